"""faster-whisper as a program: a JSON line in for each file, a JSON line out with its text.

python whisper_program.py MODEL_FOLDER
"""

import json
import sys


def main(folder: str) -> None:
    from faster_whisper import WhisperModel

    model = WhisperModel(folder, device="cpu", compute_type="int8", local_files_only=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            parts, _ = model.transcribe(asked["file"], language=asked["language"] or None, vad_filter=True)
            answer = {"text": " ".join(part.text.strip() for part in parts)}
        except Exception as error:  # a broken file is no reason to end
            answer = {"error": type(error).__name__}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
