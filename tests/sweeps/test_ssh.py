"""A cluster of hosts by SSH, whose workers a server on this computer starts: `distributed.SSHCluster`."""

import asyncio
import os
import signal
import threading
from typing import Any

import asyncssh  # pyright: ignore[reportMissingImports]
import distributed
import pytest
from sweeps.studied import PUSHES, product, samples, setup

import legged
from legged import sweeps


class Server:
    """An SSH server on a port of this computer that accepts one key and runs the commands of its clients.

    Args:
        folder: Folder of the keys.
    """

    def __init__(self, folder):
        host, self.key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
        host.write_private_key(folder / "host")
        self.key.write_public_key(folder / "accepted")
        self._files = {"server_host_keys": [str(folder / "host")], "authorized_client_keys": str(folder / "accepted")}
        self._running = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result(30.0)
        return self

    def __exit__(self, *error):
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(60.0)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def options(self):
        """Return the options of connections."""
        return {"port": self._server.get_port(), "client_keys": [self.key], "known_hosts": None, "config": None}

    async def _serve(self):
        return await asyncssh.listen("127.0.0.1", 0, process_factory=self._run, encoding=None, **self._files)

    async def _close(self):
        self._server.close()
        for child in self._running:
            os.killpg(child.pid, signal.SIGKILL)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait_for(asyncio.gather(*others, return_exceptions=True), 30.0)
        await self._server.wait_closed()

    async def _run(self, process):
        pipes: Any = dict.fromkeys(("stdout", "stderr"), asyncio.subprocess.PIPE)
        pipes |= {"stdin": asyncio.subprocess.DEVNULL, "start_new_session": True}
        child = await asyncio.create_subprocess_shell(process.command, **pipes)
        self._running.add(child)
        await process.redirect(stdout=child.stdout, stderr=child.stderr)
        code = await child.wait()
        self._running.discard(child)
        await process.stdout.drain()
        process.exit(code)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:coroutine 'Queue.join'")  # of asyncssh, for the pipes of a closed connection
@pytest.mark.skipif(os.name != "posix", reason="the server runs commands of a POSIX shell")
def test_hosts_by_ssh_give_the_table_of_threads(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((os.getcwd(), os.path.dirname(os.path.dirname(__file__)))))
    with Server(tmp_path) as server:
        hosts = {"connect_options": server.options, "worker_options": {"nthreads": 1}}
        scheduler = {"port": 0, "dashboard_address": ":0"}
        with (
            distributed.SSHCluster(3 * ["127.0.0.1"], scheduler_options=scheduler, **hosts) as cluster,
            distributed.Client(cluster) as client,
        ):
            client.wait_for_workers(2, timeout=120)
            workers: Any = client.run(os.getpid)
            assert len(set(workers.values()) - {os.getpid()}) == 2
            for name, trial, given in (("f", product, samples(100)), ("s", setup(), sweeps.random(12, PUSHES))):
                here = legged.sweep(trial, given, tmp_path / f"{name}1", chunk=6).table()
                assert legged.sweep(trial, given, tmp_path / f"{name}2", client, chunk=6).table().equals(here)
