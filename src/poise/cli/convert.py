"""`poise convert`: a motion, or a character, from one file format to another."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console

from poise.anatomy.feet import check_can_stand
from poise.characters import MOTIONS, load_character
from poise.cli import options
from poise.cli.options import progress_bar
from poise.errors import PoiseError
from poise.model.character import Character
from poise.motion import READERS, Clip, check_writable, load_clip
from poise.motion.authoring.author import author
from poise.motion.editing.prepare_balance import prepare_balance
from poise.motion.keyframes import load_keyframes
from poise.motion.library import builtin_clips
from poise.motion.preprocess import apply_cutoff, load_preprocessed, parse_cutoff
from poise.motion.retargeting.retarget import on_rig


def convert(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="The file to read, or the name of a clip.")
    ],
    result: Annotated[
        Path,
        typer.Argument(metavar="RESULT", help="The file to write; its ending says the format."),
    ],
    character: Annotated[
        str | None,
        options.option(
            "The character of the result; if its joints differ, the motion is retargeted.",
            "NAME|FILE",
            "the source's own",
        ),
    ] = None,
    map: Annotated[
        Path | None,
        options.option("A YAML file of target link: source link, where names do not match."),
    ] = None,
    like: options.Like = None,
    cutoff: Annotated[
        str | None,
        options.option(
            "Low-pass cutoff; 0 disables filtering.",
            "HZ|auto",
            "0; auto for raw files with --balanced",
        ),
    ] = None,
    level_feet: Annotated[
        bool,
        options.option("Retarget with standing feet flat on the ground.", name="--level-feet"),
    ] = False,
    balanced: Annotated[
        bool,
        options.option(
            "Level standing feet and bring the center of mass over them.", name="--balanced"
        ),
    ] = False,
    refine: Annotated[
        bool,
        options.option("Optimize keyframes until the ground explains the motion.", name="--refine"),
    ] = False,
    animation: Annotated[
        str | None, options.option("Which animation of a GLB file, by name or number.")
    ] = None,
    unit: Annotated[
        float | None, options.option("Meters per unit of a BVH file: 0.01 if in centimeters.")
    ] = None,
    rigid: Annotated[
        bool,
        options.option("Write GLB or USD without a skin, one node per link.", name="--rigid"),
    ] = False,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace a file.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Convert a motion, or a character, from one file to another.

    \b
    It reads    .bvh .amc .glb .gltf .npz .txt .json .keys.yaml
                and our own clips by name: poise clips
    It writes   .bvh .glb .npz .txt .json .usd .usda .usdc
    Characters  .yaml .xml (MJCF) are written from any of those, and from
                .yaml .xml (MJCF, MASS) .urdf, and built-in ones by name

    \b
    Examples:
    poise convert take.bvh take.glb
    poise convert walk walk.bvh
    poise convert walk.txt walk.bvh --character humanoid3d.txt
    poise convert take.bvh take.npz --character humanoid --cutoff auto
    poise convert take.bvh take.npz --character humanoid --balanced
    poise convert take.npz back.bvh --like take.bvh
    poise convert my.keys.yaml my.npz --refine
    poise convert robot.urdf robot.yaml
    """
    if os.path.exists(result):  # False, too, of a name that no file can have
        if os.path.exists(source) and os.path.samefile(source, result):
            raise PoiseError(f"{result}: is the file to be read; name another one")
        if not force:
            raise PoiseError(f"{result}: is there already; --force replaces it")
    reading: dict[str, Any] = {}
    if animation is not None:
        # a number is the place of an animation in the file
        reading["animation"] = int(animation) if animation.isdecimal() else animation
    if unit is not None:
        reading["unit"] = unit
    _check_reading(source, reading)
    editing = _Editing(character, map, like, cutoff, level_feet, balanced, refine)
    _check_editing(source, editing)
    if result.suffix.lower() in (".yaml", ".yml", ".xml"):
        _refuse_editing(result, {**editing._asdict(), "rigid": rigid})
        facts = _convert_character(source, result, reading)
    else:
        facts = _convert_motion(source, result, editing, reading, {"skin": False} if rigid else {})
    facts = {"result": str(result), **facts}
    if as_json:
        options.print_json(facts)
    else:
        typer.echo(_facts_text(facts))


def _facts_text(facts: dict[str, Any]) -> str:
    """What was written, as text."""
    if "frames" in facts:
        frames = "1 frame" if facts["frames"] == 1 else f"{facts['frames']} frames"
        what = f"{frames} at {facts['fps']:g} fps, {facts['duration']:.2f} s"
    else:
        what = f"{facts['links']} links, {facts['mass']:.4g} kg"
    if facts["guessed_unit"] is not None:
        what += f"; its unit is guessed: {facts['guessed_unit']:.5g} m (--unit)"
    note = "".join(f"{facts[key]}\n" for key in ("smoothing", "balancing") if facts.get(key))
    return f"{note}{facts['result']}: {what}"


class _Editing(NamedTuple):
    """Edits of a motion between reading and writing."""

    character: str | None
    map: Path | None
    like: Path | None
    cutoff: str | None
    level_feet: bool
    balanced: bool
    refine: bool


def _convert_motion(
    source: str,
    result: Path,
    editing: _Editing,
    reading: dict[str, Any],
    writing: dict[str, Any],
) -> dict[str, Any]:
    """Convert a motion; return what was written, ready for JSON."""
    # before a large file is read
    check_writable(result)
    parse_cutoff(editing.cutoff or "0")
    body = None if editing.character is None else load_character(editing.character)
    clip, before = _on_body(source, body, editing, reading)
    unit = _guessed_unit(source, clip, reading)
    smoothing = "; ".join(note for note in before if "smoothed" in note)
    balancing = None
    if editing.balanced:
        check_can_stand(clip.character)
        with progress_bar("balancing") as report:
            clip, _, notes = prepare_balance(clip, progress=report)
        others = [note for note in before if "smoothed" not in note]
        balancing = "; ".join((*others, *notes))
    if editing.like is not None:
        with progress_bar(f"back to {editing.like.name}") as report:
            clip = on_rig(clip, load_clip(editing.like), progress=report)
    clip.save(result, **writing)
    return {
        "character": clip.character.name,
        "frames": len(clip),
        "fps": clip.fps,
        "duration": clip.duration,
        "guessed_unit": unit,
        "smoothing": smoothing or None,
        "balancing": balancing,
    }


def _on_body(
    source: str, body: Character | None, editing: _Editing, reading: dict[str, Any]
) -> tuple[Clip, list[str]]:
    """The motion on its body, smoothed, and what was done to it, for people to read."""
    level = editing.level_feet or editing.balanced
    if editing.refine or level:
        clip = _authored(source) if editing.refine else load_clip(source, **reading)
        if editing.balanced and clip.contacts is None:
            return _from_raw(clip, body, editing)
        same = clip if body is None else clip.with_character(body)
        if same is None:
            assert body is not None
            with progress_bar("retargeting") as report:
                same = clip.retargeted(body, map=editing.map, level_feet=level, progress=report)
        clip = same
    else:
        with progress_bar("retargeting") as report:
            clip = load_clip(
                source, body, prepare=False, map=editing.map, progress=report, **reading
            )
    smooth, note = apply_cutoff(clip, editing.cutoff or "0")
    return smooth, [note] if note else []


def _from_raw(clip: Clip, body: Character | None, editing: _Editing) -> tuple[Clip, list[str]]:
    """The same of raw motion that shall be balanced, as `poise balance` has it."""
    with progress_bar("retargeting") as report:
        ready = load_preprocessed(
            clip, body, cutoff=editing.cutoff, repair_feet=True, map=editing.map, progress=report
        )
    # the unit is printed beside the result
    return ready, [note for note in ready.notes if "unit" not in note]


def _authored(source: str) -> Clip:
    """Keyframes, refined."""
    keys = load_keyframes(source)
    with Console(stderr=True).status(f"{source}: refining") as status:
        return author(
            keys, lambda stage, cost: status.update(f"{source}: {stage}, cost {cost:.1f}")
        )


def _check_editing(source: str, editing: _Editing) -> None:
    """Refuse options that would do nothing."""
    given = {"--map": editing.map is not None, "--level-feet": editing.level_feet}
    idle = [name for name, is_given in given.items() if is_given]
    if idle and editing.character is None:
        raise PoiseError(f"--character is missing: {' and '.join(idle)} say how to retarget to it")
    if editing.refine and not source.endswith(".keys.yaml"):
        raise PoiseError(f"{source}: --refine works over keyframes, a .keys.yaml file")


def _refuse_editing(result: Path, options: dict[str, Any]) -> None:
    """Refuse options that do not apply to a character alone."""
    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
    if given:
        raise PoiseError(
            f"{result}: holds a character alone, without a motion; leave out {', '.join(given)}"
        )


def _convert_character(source: str, result: Path, reading: dict[str, Any]) -> dict[str, Any]:
    """Convert a character; return what was written, ready for JSON."""
    unit = None
    if _is_motion(source):
        clip = load_clip(source, **reading)
        unit = _guessed_unit(source, clip, reading)
        character = clip.character
    else:
        character = load_character(source)
    character.save(result)
    return {
        "character": character.name,
        "links": len(character.links),
        "mass": character.mass,
        "guessed_unit": unit,
    }


def _is_motion(source: str) -> bool:
    """Whether a source is a motion with a character; DeepMimic's endings may be either."""
    path = Path(source)
    if source in builtin_clips() and not os.path.exists(source):
        return True
    return path.suffix.lower() in (*MOTIONS, ".npz") or path.name.endswith(".keys.yaml")


def _check_reading(source: str, reading: dict[str, Any]) -> None:
    """Refuse options of motion files where none is read."""
    if reading and Path(source).suffix.lower() not in READERS:
        options = " and ".join(f"--{name}" for name in reading)
        raise PoiseError(f"{source}: is no motion file; leave out {options}")


def _guessed_unit(source: str, clip: Clip, reading: dict[str, Any]) -> float | None:
    """The unit of a BVH file, which is guessed from the size of its skeleton [m]; None if given.

    A motion that was retargeted has the size of its character, whatever the unit.
    """
    if Path(source).suffix.lower() != ".bvh" or clip.source is None or "unit" in reading:
        return None
    return float(clip.source.unit)
