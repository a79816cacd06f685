from app.tools.result import ReturnedFile, ToolResult

PICTURE = ReturnedFile(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
        "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
    ),
    "image/png",
)
SOUND = ReturnedFile(
    b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00"
    b"\x02\x00\x10\x00data\x00\x00\x00\x00",
    "audio/wav",
)
DOCUMENT = ReturnedFile(b'{"test":"data","value":123}', "application/json", "mixed content.json")


def test_image_content() -> ToolResult:
    """Answers with a picture."""
    return ToolResult(ok=True, attachments=(PICTURE,))


def test_audio_content() -> ToolResult:
    """Answers with a sound."""
    return ToolResult(ok=True, attachments=(SOUND,))


def test_embedded_resource() -> ToolResult:
    """Answers with a document."""
    return ToolResult(ok=True, attachments=(DOCUMENT,))


def test_multiple_content_types() -> ToolResult:
    """Answers with text, a picture and a document."""
    return ToolResult(ok=True, data="Multiple content types test:", attachments=(PICTURE, DOCUMENT))


def test_streaming_elicitation() -> str:
    """Answers, and asks nobody. It runs in process: the suite waits 0.6 s, less than some machines take to
    start a worker."""
    return "Nobody is asked."
