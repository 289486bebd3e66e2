# sparse-adapt on a processor: README.md shows the commands. Versions are those of constraints.txt.
FROM python:3.11.14-slim-bookworm AS build
WORKDIR /source
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY corpora corpora
COPY diagnostics diagnostics
COPY sparse_adapt sparse_adapt
RUN pip install --no-cache-dir uv==0.13.9 \
    && uv venv /opt/sparse-adapt \
    && uv pip install --no-cache --python /opt/sparse-adapt --torch-backend cpu --constraint constraints.txt '.[pages]'

FROM python:3.11.14-slim-bookworm
RUN useradd --create-home --uid 1000 adapt && install --directory --owner adapt /work
COPY --from=build /opt/sparse-adapt /opt/sparse-adapt
ENV PATH=/opt/sparse-adapt/bin:$PATH
USER 1000
WORKDIR /work
ENTRYPOINT ["sparse-adapt"]
CMD ["--help"]
