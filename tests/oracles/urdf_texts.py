"""Small URDFs with every element that the reader knows, for tests that change them, and random ones."""

import numpy as np

BIPED = """<?xml version="1.0"?>
<robot name="biped">
  <material name="gray"><color rgba="0.5 0.5 0.5 1"/></material>
  <link name="base_footprint"/>
  <link name="trunk">
    <inertial>
      <origin xyz="0.01 0 0.05" rpy="0.1 0.2 0.3"/>
      <mass value="8.5"/>
      <inertia ixx="0.11" ixy="0.001" ixz="-0.002" iyy="0.12" iyz="0.003" izz="0.08"/>
    </inertial>
    <visual><geometry><mesh filename="package://biped/trunk.dae" scale="1 1 1"/></geometry></visual>
    <collision><geometry><box size="0.2 0.3 0.4"/></geometry></collision>
  </link>
  <joint name="footprint" type="fixed">
    <parent link="base_footprint"/><child link="trunk"/><origin xyz="0 0 0.6" rpy="0 0 0"/>
  </joint>
  <link name="left_thigh">
    <inertial><origin xyz="0 0 -0.1"/><mass value="1.5"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.002"/></inertial>
  </link>
  <joint name="left_hip" type="revolute">
    <parent link="trunk"/><child link="left_thigh"/><origin xyz="0 0.1 0" rpy="0.05 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-1.5" upper="1.2" effort="40" velocity="12"/><dynamics damping="0.2" friction="0.1"/>
  </joint>
  <link name="left_foot">
    <inertial><origin xyz="0 0 -0.15"/><mass value="0.7"/>
      <inertia ixx="0.004" ixy="0" ixz="0" iyy="0.004" iyz="0" izz="0.0005"/></inertial>
    <collision><origin xyz="0 0 -0.3"/><geometry><sphere radius="0.02"/></geometry></collision>
  </link>
  <joint name="left_knee" type="continuous">
    <parent link="left_thigh"/><child link="left_foot"/><origin xyz="0 0 -0.3"/><axis xyz="0 1 0"/>
    <limit effort="40" velocity="12"/>
  </joint>
  <link name="right_leg">
    <inertial><origin xyz="0 0 -0.1"/><mass value="2.2"/>
      <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.003"/></inertial>
  </link>
  <joint name="right_hip" type="revolute">
    <parent link="trunk"/><child link="right_leg"/><origin xyz="0 -0.1 0"/><axis xyz="0 0.6 0.8"/>
    <limit lower="-1.5" upper="1.2" effort="40" velocity="12"/>
  </joint>
  <link name="right_foot">
    <inertial><origin xyz="0 0 -0.15"/><mass value="0.7"/>
      <inertia ixx="0.004" ixy="0" ixz="0" iyy="0.004" iyz="0" izz="0.0005"/></inertial>
    <collision><origin xyz="0 0 -0.3"/><geometry><box size="0.2 0.1 0.04"/></geometry></collision>
  </link>
  <joint name="right_slide" type="prismatic">
    <parent link="right_leg"/><child link="right_foot"/><origin xyz="0 0 -0.2" rpy="0 0.3 0"/><axis xyz="0 0 2"/>
    <limit lower="-0.2" upper="0.1" effort="400" velocity="1"/>
  </joint>
  <transmission name="left_hip_motor">
    <type>SimpleTransmission</type>
    <joint name="left_hip"/>
    <actuator name="motor"><mechanicalReduction>9</mechanicalReduction><motorInertia>0.0001</motorInertia></actuator>
  </transmission>
  <gazebo reference="left_foot"><mu1>0.9</mu1><kp>1e6</kp></gazebo>
</robot>
"""

GRIPPER = """<robot name="gripper">
  <link name="world"/>
  <joint name="drop" type="floating"><parent link="world"/><child link="palm"/><origin xyz="0 0 1"/></joint>
  <link name="palm">
    <inertial><mass value="1"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>
  </link>
  <link name="finger">
    <inertial><mass value="0.1"/><inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-4"/></inertial>
    <collision><geometry><cylinder radius="0.01" length="0.1"/></geometry></collision>
  </link>
  <joint name="open" type="prismatic">
    <parent link="palm"/><child link="finger"/><axis xyz="0 1 0"/>
    <limit lower="0" upper="0.04" effort="10" velocity="0.2"/>
  </joint>
  <link name="thumb">
    <inertial><mass value="0.1"/><inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-4"/></inertial>
  </link>
  <joint name="follow" type="prismatic">
    <parent link="palm"/><child link="thumb"/><axis xyz="0 -1 0"/>
    <limit lower="0" upper="0.04" effort="10" velocity="0.2"/><mimic joint="open" multiplier="0.5" offset="0.01"/>
  </joint>
  <link name="puck">
    <inertial><mass value="0.3"/><inertia ixx="1e-3" ixy="0" ixz="0" iyy="1e-3" iyz="0" izz="1e-3"/></inertial>
  </link>
  <joint name="table" type="planar">
    <parent link="palm"/><child link="puck"/><origin xyz="0.1 0 0" rpy="0 0.2 0"/><axis xyz="0 0 1"/>
  </joint>
  <link name="ball">
    <inertial><mass value="0.2"/><inertia ixx="1e-3" ixy="0" ixz="0" iyy="1e-3" iyz="0" izz="1e-3"/></inertial>
  </link>
  <joint name="loose" type="floating"><parent link="puck"/><child link="ball"/></joint>
</robot>
"""


def random_urdf(seed: int) -> str:
    """Return a random tree of 2 to 15 links, every joint type, axes of any length, followers too."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 16))
    lines = [f'<robot name="random{seed}">']
    masters: list[str] = []
    for k in range(count):
        lines.append(f'<link name="link{k}">{_inertial(rng)}</link>')
        if k:
            kind = str(rng.choice(["revolute", "continuous", "prismatic", "fixed", "floating", "planar"]))
            axis = rng.normal(size=3) if kind != "planar" else np.array([0.0, 0.0, 1.0])
            mimic = ""
            if kind in ("revolute", "prismatic"):
                if masters and rng.uniform() < 0.3:
                    factor, offset = rng.uniform(0.5, 2.0), rng.uniform(-1, 1)
                    mimic = f'<mimic joint="{rng.choice(masters)}" multiplier="{factor}" offset="{offset}"/>'
                else:
                    masters.append(f"joint{k}")
            lines.append(
                f'<joint name="joint{k}" type="{kind}"><parent link="link{int(rng.integers(k))}"/>'
                f'<child link="link{k}"/>{_origin(rng)}'
                f'<axis xyz="{_words(axis)}"/><limit lower="-1" upper="1" effort="9" velocity="9"/>{mimic}</joint>'
            )
    return "\n".join([*lines, "</robot>"])


def _inertial(rng: np.random.Generator) -> str:
    points = rng.normal(size=(5, 3)) * rng.uniform(0.05, 0.3)
    second = points.T @ points
    I = np.trace(second) * np.eye(3) - second  # of five points of 1 kg about their mean
    moments = zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), I[np.triu_indices(3)], strict=True)
    words = " ".join(f'{name}="{float(x)!r}"' for name, x in moments)
    return f'<inertial>{_origin(rng)}<mass value="5"/><inertia {words}/></inertial>'


def _origin(rng: np.random.Generator) -> str:
    return f'<origin xyz="{_words(rng.normal(size=3) * 0.3)}" rpy="{_words(rng.uniform(-3, 3, 3))}"/>'


def _words(values: np.ndarray) -> str:
    return " ".join(repr(float(value)) for value in values)
