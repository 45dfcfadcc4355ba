# The container image, in two variants from one layer: `emulator`, and `bolide` for data that matters (the default).
#
# `cargo xtask image` writes the root file system of each architecture, with the static binary of the release archive, to target/image/ and builds and
# tests both variants. By hand: `cargo xtask image --prepare`, then `docker build --target emulator --tag bolide:emulator .`
# docs/container.md says how to use them, and why there are two.

FROM scratch AS base
ARG TARGETARCH
# A tar file and not a directory, because it keeps the owners: /data and the emulator's directories belong to the user, the rest to root.
ADD target/image/rootfs-${TARGETARCH}.tar /
ENV PATH=/usr/local/bin
USER 65532:65532
VOLUME /data
EXPOSE 8081 10255 8080 1234
HEALTHCHECK --interval=5s --timeout=3s --start-period=60s --retries=3 CMD ["/usr/local/bin/bolide", "health"]
ENTRYPOINT ["/usr/local/bin/bolide"]
LABEL org.opencontainers.image.title="Bolide" \
      org.opencontainers.image.description="A document database that speaks Azure Cosmos DB for NoSQL and MongoDB, and expires data exactly" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"

# Emulator mode: the public, well-known key on all addresses. Only where everybody who reaches the ports may do everything.
FROM base AS emulator
ENV BOLIDE_EMULATOR=1

# Listens on all addresses too, so it refuses to start without a key of its own.
FROM base AS bolide
ENV BOLIDE_HOST=0.0.0.0 BOLIDE_DATA_DIR=/data
