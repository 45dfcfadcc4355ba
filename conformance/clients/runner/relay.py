"""Network latency between client and server: forwards bytes and delays every response.

Some of azure-cosmos' own tests set time-outs of a picosecond and expect them to strike. Over loopback an answer can be
there first; with a few milliseconds in between, as over a network, it never is.
"""

import asyncio
import threading

DELAY_SECONDS = 0.02
CHUNK_BYTES = 64 * 1024


class Relay:
    """Listens on a free port of 127.0.0.1 in front of a server's port; a context manager."""

    def __init__(self, server_port):
        self._server_port = server_port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.port = None

    def __enter__(self):
        self._thread.start()
        listening = asyncio.start_server(self._connect, "127.0.0.1", 0)
        listener = asyncio.run_coroutine_threadsafe(listening, self._loop).result()
        self.port = listener.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_error):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _connect(self, client_reader, client_writer):
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._server_port)
        await asyncio.gather(
            hand_on(client_reader, server_writer, delay=0),
            hand_on(server_reader, client_writer, delay=DELAY_SECONDS),
        )


async def hand_on(reader, writer, delay):
    """Copies one direction of a connection to its end, each part after the delay."""
    try:
        while part := await reader.read(CHUNK_BYTES):
            await asyncio.sleep(delay)
            writer.write(part)
            await writer.drain()
    except ConnectionError:
        pass  # either side may go at any time; the other is closed below
    finally:
        writer.close()
