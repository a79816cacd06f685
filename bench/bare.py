"""What stands beside the server: FastAPI applications that store nothing."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiosqlite
from fastapi import FastAPI, Request

plain = FastAPI()


@plain.post("/webhook")
async def webhook(request: Request) -> dict[str, bool]:
    await request.body()
    return {"ok": True}


@plain.get("/health")
async def health() -> dict[str, str]:
    return {"status": "ok"}


@asynccontextmanager
async def _opened(_: FastAPI) -> AsyncIterator[None]:
    async with aiosqlite.connect(f"{os.environ.get('BARE_FOLDER', '.')}/bare.db") as connection:
        await connection.execute("PRAGMA journal_mode=WAL")
        yield


with_sqlite = FastAPI(lifespan=_opened)
with_sqlite.include_router(plain.router)
