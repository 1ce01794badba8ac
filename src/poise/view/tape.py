"""Tape: a viser scene that no server shows, kept to become one HTML file."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from poise.view.camera import Camera


class Tape:
    """What happens in a viser scene, in the order of time; no port is opened.

    Attributes:
        scene: viser's interface to the scene, as `server.scene`.
    """

    def __init__(self) -> None:
        from viser import SceneApi, ViserServer
        from viser.infra import StateSerializer, WebsockMessageHandler
        from viser.infra._async_message_buffer import AsyncMessageBuffer

        nobody: Any = None

        class Recorder(WebsockMessageHandler):
            """Takes the messages of a scene, and sends them nowhere."""

            def queue_message(self, message: Any) -> None:
                for handle in self._record_handles:
                    handle._insert_message(message)

            def get_message_buffer(self) -> Any:
                # what viser would tell to pages that come later: it stays empty
                return AsyncMessageBuffer(event_loop=nobody, persistent_messages=False)

        class Owner(ViserServer):
            """The owner of a scene that is not served."""

            def __init__(self, recorder: Any) -> None:
                self._websock_server = recorder
                self._scene_lifecycle_lock = threading.RLock()

        self._recorder = Recorder()
        self._serializer: StateSerializer = self._recorder.get_message_serializer(
            filter=lambda message: message.include_in_scene_serialization
        )
        self.scene = SceneApi(Owner(self._recorder), nobody, nobody)
        self.scene.set_up_direction("+z")

    def look(self, camera: Camera) -> None:
        """Where one looks from at first.

        Args:
            camera: As of `render`.
        """
        from viser import InitialCameraConfig

        view = InitialCameraConfig(broadcast=self._recorder.queue_message)
        view.position, view.look_at = np.array(camera.eye), np.array(camera.target)
        view.up = np.array(camera.up)
        view.fov, view.near = camera.fov, 0.05

    def wait(self, duration: float) -> None:
        """Let time pass [s]."""
        self._serializer.insert_sleep(duration)

    def html(self) -> str:
        """The whole file; to be asked for once, at the end."""
        return self._serializer.as_html()
