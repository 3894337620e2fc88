"""MJCF models, each with a feature that importers often mishandle."""

_HEAD = '<compiler angle="radian"/>'


def _model(inside: str, after: str = "", head: str = "") -> str:
    return f'<mujoco model="a test">{_HEAD}{head}<worldbody>{inside}</worldbody>{after}</mujoco>'


def _inertial(mass: float, pos: str, diagonal: str, turned: str = "") -> str:
    return f'<inertial mass="{mass}" pos="{pos}" diaginertia="{diagonal}" {turned}/>'


_HEAVY = _inertial(3, "0.05 -0.02 0.1", "0.02 0.03 0.035", 'quat="0.8 0.2 -0.4 0.4"')
_LIGHT = _inertial(0.7, "0.01 0.03 -0.2", "0.004 0.006 0.005", 'euler="0.3 0.4 -0.5"')

PENDULUM = _model(
    f"""<body name="rod" pos="0.1 0.2 0.3" euler="0.2 -0.3 0.5">
      <joint name="swing" axis="0.6 0.8 0" damping="0.4" armature="0.05" stiffness="3" springref="0.7"/>{_HEAVY}
    </body>""",
    head='<option gravity="0.5 -1 -9.7"/>',
)
"""Fixed base; damping, armature, a spring; a turned inertia; gravity of its own."""

REFERENCES = _model(
    f"""<body name="a" quat="0.5 0.5 0.1 -0.3">
      <joint name="turn" axis="0 1 1" ref="0.8" springref="-0.3" stiffness="5"/>{_HEAVY}
      <body name="b" pos="0 0 0.4" euler="0 1 0">
        <joint name="slide" type="slide" axis="1 2 -1" ref="-0.25" springref="0.1" stiffness="40"/>{_LIGHT}
        <body name="c" pos="0.2 0.1 0"><joint name="last" axis="1 0 0" ref="-1.3"/>{_LIGHT}</body>
      </body>
    </body>"""
)
"""Joints whose coordinates are not zero where the bodies are drawn."""

ANCHORS = _model(
    f"""<body name="a"><joint name="one" axis="0 1 0" pos="0.1 -0.2 0.3"/>{_HEAVY}
      <body name="b" pos="0.3 0 0.1" euler="0.1 0.2 0.3">
        <joint name="two" axis="1 1 0" pos="0 0.2 0.1" ref="0.4"/>{_LIGHT}
        <body name="c" pos="0 0.3 0"><joint name="three" type="ball" pos="0.05 0 -0.1"/>{_HEAVY}
          <body name="d" pos="0 0 -0.5">{_LIGHT}</body>
        </body>
      </body>
    </body>"""
)
"""Joints off their bodies' origins; a body without joints."""

SEVERAL = _model(
    f"""<body name="trunk" pos="0 0 1"><joint name="x" type="slide" axis="1 0 0" damping="1"/>
      <joint name="z" type="slide" axis="0 0 1" ref="1" armature="0.3"/>
      <joint name="pitch" type="hinge" axis="0 1 0" stiffness="2"/>{_HEAVY}
      <body name="leg" pos="0 0.1 -0.1"><joint name="yaw" axis="0 0 1" pos="0 0 0.1"/>
        <joint name="roll" axis="1 0 0" pos="0 0.02 0" damping="0.2"/><joint name="tilt" axis="0.1 1 0" ref="0.3"/>
        {_LIGHT}
        <body name="shank" pos="0 0 -0.4"><joint name="knee" axis="0 1 0" pos="0 0 0.05"/>{_LIGHT}</body>
      </body>
    </body>"""
)
"""A planar base made of three joints; three hinges in one body, two of them off its origin."""

BALLS = _model(
    f"""<body name="a" pos="0 0 2">
      <joint name="shoulder" type="ball" damping="0.6" armature="0.04" stiffness="1.5"/>{_HEAVY}
      <body name="b" pos="0.5 0 0" quat="0.7 -0.1 0.5 0.5"><joint name="wrist" type="ball" damping="0.1"/>{_LIGHT}
        <body name="c" pos="0.1 0.2 0.3"><joint name="finger" axis="1 0 2"/>{_LIGHT}</body>
      </body>
      <body name="e" pos="-0.5 0 0"><joint name="shift" type="slide" axis="0 0 1"/><joint name="swivel" type="ball"/>
        {_LIGHT}</body>
    </body>"""
)
"""Ball joints with damping, armature and a spring; a slide and a ball in one body."""

FLOATING = _model(
    f"""<geom type="plane" size="5 5 1"/>
    <body name="trunk" pos="0.3 0.2 0.9" euler="0.3 0.2 0.1"><freejoint name="root"/>{_HEAVY}
      <site name="imu" pos="0.1 0.05 0.08" euler="0 0.4 0"/>
      <body name="thigh" pos="0.2 0.1 0"><joint name="hip" axis="0 1 0" armature="0.02" damping="0.3"/>{_LIGHT}
        <body name="shank" pos="0 0 -0.3"><joint name="knee" axis="0 1 0" ref="-0.5"/>{_LIGHT}
          <geom name="foot" type="sphere" size="0.02" pos="0 0 -0.3" mass="0"/></body>
      </body>
      <body name="arm" pos="0.2 -0.1 0.1"><joint name="elbow" axis="0 0 1" pos="0 0.1 0"/>{_LIGHT}</body>
    </body>"""
)
"""A free base with a site, a floor and a branch."""

MOTORS = _model(
    f"""<body name="trunk" pos="0 0 1"><joint name="float" type="free"/>{_HEAVY}
      <body name="left" pos="0 0.2 0"><joint name="l" class="leg"/>{_LIGHT}</body>
      <body name="right" pos="0 -0.2 0">
        <joint name="r" class="leg" axis="0 1 0" actuatorfrcrange="-9 9"/>{_LIGHT}</body>
      <body name="neck" pos="0.3 0 0.1"><joint name="n" type="ball"/>{_LIGHT}</body>
    </body>""",
    """<actuator>
      <motor joint="l" gear="3" armature="0.002" damping="0.01" ctrlrange="-2 2"/>
      <motor joint="l" gear="-2" armature="0.001" forcerange="-5 5" forcelimited="true"/>
      <position joint="r" kp="50" gear="2" armature="0.004" forcerange="-7 7"/>
      <motor joint="n" gear="2 0 0" armature="0.003"/>
    </actuator>""",
    '<default><default class="leg"><joint armature="0.01" damping="0.2" axis="1 0 0"/></default></default>',
)
"""Defaults; rotors and damping of actuators behind their gears."""

GEOMETRIES = _model(
    """<body name="a" pos="0 0 1"><joint name="hinge" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0.3 0.1 -0.2" size="0.04"/>
      <geom type="box" size="0.1 0.05 0.02" euler="0.4 0.2 0"/>
      <body name="b" pos="0.3 0.1 -0.2"><joint name="ball" type="ball" pos="0 0 0.1"/>
        <geom type="ellipsoid" size="0.1 0.05 0.08" mass="0.5"/>
        <geom type="cylinder" size="0.03 0.1" pos="0.1 0 0"/></body>
    </body>
    <body name="table" pos="1 0 0"><geom type="box" size="0.5 0.5 0.1"/>
      <body name="drawer" pos="0 0 0.1"><joint name="pull" type="slide" axis="1 0 0" damping="2"/>
        <geom type="box" size="0.2 0.2 0.05"/></body>
    </body>"""
)
"""Inertias from shapes, and two trees on the world."""

TWO_BODIES = _model(
    f"""<body name="cart" pos="0 1 0"><freejoint name="cart_free"/>{_HEAVY}
      <body name="pole"><joint name="pole" axis="1 0 0"/>{_LIGHT}</body></body>
    <body name="ball" pos="1 0 0"><freejoint name="ball_free"/>{_LIGHT}</body>"""
)
"""Two free bodies, of which one has a pole."""

HEAVY_BASE = FLOATING.replace(
    '<freejoint name="root"/>', '<joint name="root" type="free" armature="0.9" damping="1.3"/>'
)
"""A free joint with armature and damping, as the defaults of public files often give it."""

MODELS = {
    "pendulum": PENDULUM,
    "references": REFERENCES,
    "anchors": ANCHORS,
    "several joints in a body": SEVERAL,
    "balls": BALLS,
    "floating": FLOATING,
    "floating with armature": HEAVY_BASE,
    "motors": MOTORS,
    "geometries": GEOMETRIES,
    "two free bodies": TWO_BODIES,
}

COUPLED = _model(
    f"""<body name="palm"><joint name="wrist" axis="0 0 1"/>{_HEAVY}
      <body name="thumb" pos="0.1 0 0"><joint name="thumb" axis="0 1 0" ref="0.3" damping="0.1"/>{_LIGHT}
        <body name="tip" pos="0 0 0.1"><joint name="tip" axis="0 1 1" ref="-0.2" armature="0.02"/>{_LIGHT}</body></body>
    </body>""",
    '<equality><joint name="linkage" joint1="tip" joint2="thumb" polycoef="0.25 -0.6 0 0 0"/></equality>',
)
"""A joint that follows another, with references of both."""
