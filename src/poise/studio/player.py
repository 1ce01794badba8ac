"""A recording that is played: the same to look at as the simulation."""

from __future__ import annotations

import numpy as np

from poise.recording import Recording
from poise.studio.cast import Cast
from poise.studio.moments import Frame, frame_of_recording


class Player:
    """A place in a recording.

    Args:
        recording: The recording.
        name: What to call it.
        copy: Which copy is shown.
    """

    def __init__(self, recording: Recording, name: str, copy: int = 0) -> None:
        self.recording, self.name, self.copy = recording, name, copy
        self.cast = Cast(recording.settings, recording.scene)
        self._time = recording.frames.column("time")[:, copy]
        self._at = 0.0  # since the first frame [s], at the recording's rate

    def __len__(self) -> int:
        return len(self.recording)

    @property
    def frame(self) -> int:
        """Which frame is shown."""
        return min(int(self._at / self.recording.interval + 1e-6), len(self) - 1)

    @property
    def time(self) -> float:
        """Time of the frame that is shown [s]."""
        return float(self._time[self.frame])

    @property
    def start(self) -> float:
        """Time of the first frame [s]."""
        return float(self._time[0])

    @property
    def end(self) -> float:
        """Time of the last frame [s]."""
        return float(self._time[-1])

    def go(self, seconds: float, loop: bool) -> bool:
        """Go on; whether there is anything left to play."""
        length = len(self) * self.recording.interval
        self._at += seconds
        if self._at < length:
            return True
        self._at = self._at % length if loop else length
        return loop

    def show(self, frame: int) -> None:
        """Go to a frame; -1 is the last."""
        last = len(self) - 1
        self._at = (last if frame < 0 else min(frame, last)) * self.recording.interval

    def show_time(self, time: float) -> None:
        """Go to the frame that was there at a time [s]; before it begins, the first."""
        self.show(max(0, int(np.searchsorted(self._time, time + 1e-6, side="right")) - 1))

    def picture(self) -> Frame:
        """What is shown."""
        return frame_of_recording(self.recording, self.frame, self.copy)
