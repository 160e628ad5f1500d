"""Writes a wheel with one program: wheel.py PROGRAM WHEEL ROOT VERSION TAG DESCRIPTION LICENSE."""

import base64
import hashlib
import pathlib
import sys
import zipfile

program, wheel, root = (pathlib.Path(argument) for argument in sys.argv[1:4])
version, tag, description, license_expression = sys.argv[4:8]
info = f"outlast-{version}.dist-info"
licenses = ["LICENSE-MIT", "LICENSE-APACHE"]

metadata = "\n".join(
    [
        "Metadata-Version: 2.4",
        "Name: outlast",
        f"Version: {version}",
        f"Summary: {description}",
        f"License-Expression: {license_expression}",
        *(f"License-File: {name}" for name in licenses),
        "Requires-Python: >=3.8",
        "Description-Content-Type: text/markdown",
        "",
        (root / "README.md").read_text(encoding="utf-8"),
    ]
)
about = f"Wheel-Version: 1.0\nGenerator: outlast xtask\nRoot-Is-Purelib: false\nTag: {tag}\n"

files = [
    (f"outlast-{version}.data/scripts/outlast", program.read_bytes(), 0o755),
    *((f"{info}/licenses/{name}", (root / name).read_bytes(), 0o644) for name in licenses),
    (f"{info}/METADATA", metadata.encode(), 0o644),
    (f"{info}/WHEEL", about.encode(), 0o644),
]

record = ""
with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:

    def add(name, content, mode):
        # A fixed time, so that the same files give the same wheel.
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100000 | mode) << 16
        archive.writestr(entry, content)

    for name, content, mode in files:
        add(name, content, mode)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    add(f"{info}/RECORD", (record + f"{info}/RECORD,,\n").encode(), 0o644)
