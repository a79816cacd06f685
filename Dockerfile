# Every dependency comes as a wheel for amd64 and arm64: no compiler is needed.
FROM python:3.12-slim AS build
RUN python -m venv /venv
ENV PATH=/venv/bin:$PATH
WORKDIR /app
COPY pyproject.toml README.md LICENSE ./
COPY app ./app
# Editable, because the bundled skills are looked for beside the code: /app/app and /app/skills.
RUN pip install --no-cache-dir --disable-pip-version-check --editable '.[postgres]' \
 && python -m compileall -q app

FROM node:22-slim AS node

FROM python:3.12-slim
# The sandbox of code that came from elsewhere. A pinned version would vanish from Debian with its next repair.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends bubblewrap \
 && rm -rf /var/lib/apt/lists/*
# For MCP servers that are npm packages: the interpreter and npm, about 130 MB.
COPY --from=node /usr/local/bin/node /usr/local/bin/
COPY --from=node /usr/local/lib/node_modules/npm /usr/local/lib/node_modules/npm
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \
 && ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx
RUN useradd --uid 1000 --create-home recado
WORKDIR /app
COPY --from=build /venv /venv
COPY --from=build /app /app
COPY skills ./skills
# A new volume takes over the owner and the mode of the folder that it covers.
RUN install --directory --owner=recado --group=recado --mode=0700 data /skills
ENV PATH=/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    HOST=0.0.0.0 \
    PORT=8000
# By its number, so that a runtime that demands a user other than root can see that it is one.
USER 1000:1000
VOLUME ["/app/data", "/skills"]
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
  CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(f\"http://127.0.0.1:{os.environ['PORT']}/health\", timeout=4)"]
CMD ["recado", "serve"]
