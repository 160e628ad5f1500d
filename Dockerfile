# The gateway in a container. Servers that are commands must be in the image: build on top of this one, or add them below.
#
#   docker build -t outlast --build-arg OUTLAST_COMMIT=$(git rev-parse --short=9 HEAD) \
#     --build-arg OUTLAST_COMMIT_DATE=$(git log -1 --format=%cs) .
#   docker run -p 8040:8040 -v outlast:/data -v $PWD/mcp.json:/config/mcp.json:ro outlast
FROM rust:1.95-bookworm AS build
WORKDIR /outlast
COPY . .
# For `outlast --version`: .dockerignore leaves out the git folder.
ARG OUTLAST_COMMIT=
ARG OUTLAST_COMMIT_DATE=
RUN OUTLAST_COMMIT="$OUTLAST_COMMIT" OUTLAST_COMMIT_DATE="$OUTLAST_COMMIT_DATE" \
    sh packaging/docker/build.sh /usr/local/bin/outlast

FROM node:22-bookworm-slim
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates \
 && rm -rf /var/lib/apt/lists/* \
 && install -d -o node -g node /data
COPY --from=build /usr/local/bin/outlast /usr/local/bin/outlast
COPY packaging/docker/healthcheck.mjs /usr/local/share/outlast/healthcheck.mjs
USER node
# Tasks and the token of the local user; keep it, and tasks outlive the container.
ENV XDG_DATA_HOME=/data
VOLUME /data
EXPOSE 8040
STOPSIGNAL SIGTERM
HEALTHCHECK CMD ["node", "/usr/local/share/outlast/healthcheck.mjs"]
ENTRYPOINT ["outlast"]
CMD ["serve", "--http", "0.0.0.0:8040", "--config", "/config/mcp.json"]
