"""faster-whisper as a program: writes a JSON line with the text of a file.

python whisper_program.py MODEL_FOLDER FILE LANGUAGE
"""

import json
import sys


def main(folder: str, file: str, language: str) -> None:
    from faster_whisper import WhisperModel

    model = WhisperModel(folder, device="cpu", compute_type="int8", local_files_only=True)
    try:
        parts, _ = model.transcribe(file, language=language or None, vad_filter=True)
        answer = {"text": " ".join(part.text.strip() for part in parts)}
    except Exception as error:  # the file is at fault
        answer = {"error": type(error).__name__}
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
