"""Files on their way to Meta: the form that brings one."""

import secrets

from app.messages import MediaFile

UPLOAD_SECONDS = 60.0


def upload_form(file: MediaFile, data: bytes) -> tuple[bytes, str]:
    """The body of an upload and its content type. A name of ours holds no quotation mark and no line end."""
    boundary = secrets.token_hex(16)
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="messaging_product"\r\n\r\nwhatsapp\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="type"\r\n\r\n{file.mime_type}\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{file.name}"\r\n'
        f"Content-Type: {file.mime_type}\r\n\r\n"
    )
    return b"".join((head.encode(), data, f"\r\n--{boundary}--\r\n".encode())), (
        f"multipart/form-data; boundary={boundary}"
    )
