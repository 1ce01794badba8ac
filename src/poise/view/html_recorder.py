"""HtmlRecorder: records a viser scene, without a server, into one HTML file."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from poise.view.camera import Camera


class HtmlRecorder:
    """Records the messages of a viser scene over time; opens no port.

    Attributes:
        scene: viser's interface to the scene, as `server.scene`.
    """

    def __init__(self) -> None:
        from viser import SceneApi, ViserServer
        from viser.infra import StateSerializer, WebsockMessageHandler
        from viser.infra._async_message_buffer import AsyncMessageBuffer

        missing: Any = None

        class Recorder(WebsockMessageHandler):
            """Receives the messages of a scene and sends them nowhere."""

            def queue_message(self, message: Any) -> None:
                for handle in self._record_handles:
                    handle._insert_message(message)

            def get_message_buffer(self) -> Any:
                # messages for pages that connect later: stays empty
                return AsyncMessageBuffer(event_loop=missing, persistent_messages=False)

        class Owner(ViserServer):
            """The owner of a scene that is not served."""

            def __init__(self, recorder: Any) -> None:
                self._websock_server = recorder
                self._scene_lifecycle_lock = threading.RLock()

        self._recorder = Recorder()
        self._serializer: StateSerializer = self._recorder.get_message_serializer(
            filter=lambda message: message.include_in_scene_serialization
        )
        self.scene = SceneApi(Owner(self._recorder), missing, missing)
        self.scene.set_up_direction("+z")

    def look(self, camera: Camera) -> None:
        """Sets the initial camera.

        Args:
            camera: See `render`.
        """
        from viser import InitialCameraConfig

        view = InitialCameraConfig(broadcast=self._recorder.queue_message)
        view.position, view.look_at = np.array(camera.eye), np.array(camera.target)
        view.up = np.array(camera.up)
        view.fov, view.near = camera.fov, 0.05

    def wait(self, duration: float) -> None:
        """Advances the time of the recording [s]."""
        self._serializer.insert_sleep(duration)

    def html(self) -> str:
        """The whole file; call it once, at the end."""
        return self._serializer.as_html()
