# One static binary in an otherwise empty image.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
# Without go.work (see .dockerignore), so that only go.mod says what the server is built of, as
# it does for programs that embed it.
COPY . .
# The sources come without their history, so the version must be named:
# docker build --build-arg VERSION=$(git describe --tags --always) .
ARG VERSION=
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X github.com/holdfast-agents/holdfast/internal/command.release=$VERSION" -o /out/holdfast ./cmd/holdfast \
 && mkdir /out/data

FROM scratch
# Certificates to call models, and time zones for the clock tool.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /usr/local/go/lib/time/zoneinfo.zip /zoneinfo.zip
COPY --from=build /out/holdfast /holdfast
COPY --from=build --chown=65532:65532 /out/data /data
# In a container nobody else can reach localhost, so listen on all addresses. That
# requires HOLDFAST_API_KEYS or HOLDFAST_JWKS, or HOLDFAST_ALLOW_ANONYMOUS=1 behind
# something that guards the server, with HOLDFAST_HOSTS for any name but localhost.
ENV ZONEINFO=/zoneinfo.zip \
    HOLDFAST_ADDR=0.0.0.0:8080 \
    HOLDFAST_STORE=file:/data
USER 65532:65532
VOLUME /data
EXPOSE 8080
# Asks the server inside whether it can serve: its engine runs and its store answers.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 CMD ["/holdfast", "healthcheck"]
ENTRYPOINT ["/holdfast"]
