"""Records docs/images/demo.svg: `outlast demo` is killed in the middle and started again.

Usage: python3 docs/images/record_demo.py target/debug/outlast

The demo really runs, in tmux. Each change of the screen becomes one frame of an animated SVG, with the time at which it
was seen.
"""

import html
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

COLUMNS, ROWS = 92, 32
CELL_WIDTH, LINE_HEIGHT, MARGIN = 8.4, 19, 16
LAST_FRAME_SECONDS = 8
SAMPLE_SECONDS = 0.4
COLOURS = {"1": None, "2": "#8b949e", "31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "36": "#79c0ff"}
SOCKET = f"outlast-demo-{os.getpid()}"


def tmux(*args):
    done = subprocess.run(["tmux", "-L", SOCKET, *args], check=True, capture_output=True, text=True)
    return done.stdout


class Recording:
    def __init__(self):
        self.began = time.monotonic()
        self.frames = []

    def sample(self):
        screen = tmux("capture-pane", "-e", "-p", "-t", "demo").rstrip("\n")
        if not self.frames or self.frames[-1][1] != screen:
            self.frames.append((time.monotonic() - self.began, screen))
        return screen

    def until(self, found, what, limit=60):
        end = time.monotonic() + limit
        while time.monotonic() < end:
            screen = re.sub(r"\x1b\[[0-9;]*m", "", self.sample())
            if found(screen):
                return screen
            time.sleep(SAMPLE_SECONDS)
        sys.exit(f"{what} does not appear:\n{screen}")


def record(program):
    with tempfile.TemporaryDirectory() as data:
        path = f"{pathlib.Path(program).resolve().parent}:{os.environ['PATH']}"
        shell = ["env", f"PATH={path}", f"XDG_DATA_HOME={data}", "PS1=$ ", "LANG=C.UTF-8", "bash", "--norc", "-i"]
        tmux("new-session", "-d", "-s", "demo", "-x", str(COLUMNS), "-y", str(ROWS), *shell)
        try:
            recording = Recording()
            recording.until(lambda screen: screen.startswith("$"), "the prompt")
            tmux("send-keys", "-t", "demo", "outlast demo", "Enter")
            screen = recording.until(lambda screen: "3/5" in screen and "✔ confirm" in screen, "progress")
            pid = int(re.search(r"kill -9 (\d+)", screen).group(1))
            os.kill(pid, signal.SIGKILL)
            recording.until(lambda screen: "Killed" in screen, "the end of the process")
            tmux("send-keys", "-t", "demo", "outlast demo", "Enter")
            recording.until(lambda screen: "Every outcome is stored" in screen, "the outcome")
            recording.until(lambda screen: screen.rstrip().endswith("$"), "the prompt")
        finally:
            tmux("kill-server")
    hidden = re.compile(re.escape(data))
    return [(at, hidden.sub("~/.local/share", screen)) for at, screen in recording.frames]


def spans(line):
    """The text of a line with its colours, as SVG."""
    colour, bold, result = None, False, []
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b["):
            for code in part[2:-1].split(";"):
                if code in ("", "0"):
                    colour, bold = None, False
                elif code == "1":
                    bold = True
                elif code in COLOURS:
                    colour = COLOURS[code]
                elif code in ("39", "22"):
                    colour, bold = (None, bold) if code == "39" else (colour, False)
        elif part:
            style = (f' fill="{colour}"' if colour else "") + (' font-weight="bold"' if bold else "")
            result.append(f"<tspan{style}>{html.escape(part)}</tspan>" if style else html.escape(part))
    return "".join(result)


def svg(frames):
    total = frames[-1][0] + LAST_FRAME_SECONDS
    used = max(screen.count("\n") + 1 for _, screen in frames)
    width, height = COLUMNS * CELL_WIDTH + 2 * MARGIN, used * LINE_HEIGHT + 2 * MARGIN
    styles, groups = [], []
    for index, (at, screen) in enumerate(frames):
        last = index + 1 == len(frames)
        end = total if last else frames[index + 1][0]
        lines = "".join(
            f'<text y="{MARGIN + (row + 0.75) * LINE_HEIGHT:g}" x="{MARGIN}">{spans(line)}</text>'
            for row, line in enumerate(screen.split("\n"))
            if line.strip()
        )
        begin, finish = 100 * at / total, 100 * end / total
        hide = "" if last else f"{finish:.3f}%{{visibility:hidden}}"
        show = f"{begin:.3f}%{{visibility:visible}}"
        zero = "" if index == 0 else "0%{visibility:hidden}"
        styles.append(f"@keyframes f{index}{{{zero}{show}{hide}100%{{visibility:{'visible' if last else 'hidden'}}}}}")
        # A viewer without animations shows the last frame.
        start = "visible" if last else "hidden"
        groups.append(f'<g style="visibility:{start};animation:f{index} {total:.2f}s step-end infinite">{lines}</g>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-size="14" '
        f'font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" fill="#e6edf3" xml:space="preserve">'
        f"<title>outlast demo is killed and started again; the same tasks end with their outcomes</title>"
        f"<style>{''.join(styles)}text{{white-space:pre}}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="#0d1117"/>{"".join(groups)}</svg>\n'
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    target = pathlib.Path(__file__).with_name("demo.svg")
    target.write_text(svg(record(sys.argv[1])))
    print(target)
