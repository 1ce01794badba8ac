"""Size of the package: modules, lines of code, modules with one importer, hidden imports.

    .venv/bin/python .ci/size.py [FOLDER]      default: src/poise

A line of code is one that is neither blank, nor a comment, nor part of a docstring (a string that
stands alone as a statement). Imports are those of the package's own modules.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def code_lines(source: str) -> int:
    """Lines that hold code."""
    strings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                strings.update(range(node.lineno, (node.end_lineno or 0) + 1))
    skipped = (
        tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
        tokenize.ENCODING, tokenize.ENDMARKER,
    )  # fmt: skip
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - strings)


def module_name(path: Path, root: Path) -> str:
    """Dotted name of a module."""
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path, modules: set[str]) -> list[tuple[str, int, bool]]:
    """Imported modules of the package: name, line, and whether it stands inside a function.

    Imports for type checking alone do not count.
    """
    tree = ast.parse(path.read_text())
    found: list[tuple[str, int, bool]] = []

    def visit(node: ast.AST, inside: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            if isinstance(child, ast.ImportFrom) and child.level == 0 and child.module:
                for name in child.names:
                    full = f"{child.module}.{name.name}"
                    found.append((full if full in modules else child.module, child.lineno, inside))
            elif isinstance(child, ast.Import):
                found.extend((name.name, child.lineno, inside) for name in child.names)
            nested = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            visit(child, inside or nested)

    visit(tree, False)
    return [one for one in found if one[0] in modules]


def main() -> None:
    """Print the numbers."""
    root = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "src" / "poise"
    paths = sorted(root.rglob("*.py"))
    names = {module_name(path, root): path for path in paths}
    importers: dict[str, set[str]] = defaultdict(set)
    hidden = 0
    for name, path in names.items():
        for target, _, inside in imports_of(path, set(names)):
            if target != name:
                importers[target].add(name)
                hidden += inside
    code = sum(code_lines(path.read_text()) for path in paths)
    alone = [name for name in names if len(importers[name]) == 1]
    print(f"modules                     {len(paths)}")
    print(f"lines                       {sum(len(p.read_text().splitlines()) for p in paths)}")
    print(f"lines of code               {code}")
    print(f"modules with one importer   {len(alone)}")
    print(f"imports inside functions    {hidden}")
    print(f"loose modules at the top    {len(list(root.glob('*.py')))}")


if __name__ == "__main__":
    main()
