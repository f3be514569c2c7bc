#!/bin/sh
# Checks what is in this folder with the tools it is for: helm, Kubernetes' and Compose's schemas, hadolint, nginx and
# systemd. Tools that are not on this machine are named and passed over. Usage: deploy/check.sh [FOLDER OF PROGRAMS]
set -eu
PATH="${1:+$(cd "$1" && pwd):}$PATH:/usr/sbin"
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

has() {
    command -v "$1" >/dev/null || { echo "not checked, $1 is not here: $2"; return 1; }
}

if has helm "the chart"; then
    helm lint --strict helm/pagefold
    helm template one helm/pagefold >"$work/plain.yaml"
    helm template one helm/pagefold --set ingress.enabled=true,ingress.tlsSecret=tls,autoscaling.enabled=true >"$work/all.yaml"
    helm template one helm/pagefold --set serviceMonitor=true >/dev/null
    if helm template one helm/pagefold --set replicas=0 >/dev/null 2>&1; then
        echo "the chart takes replicas=0" && exit 1
    fi
    if has kubernetes-validate "the chart against Kubernetes' schemas"; then
        kubernetes-validate --strict --quiet "$work/plain.yaml" "$work/all.yaml"
    fi
fi
if has hadolint Dockerfile; then hadolint Dockerfile; fi
if has check-jsonschema compose/compose.yaml; then
    check-jsonschema --builtin-schema vendor.compose-spec compose/compose.yaml
fi
if has nginx nginx/pagefold.conf; then
    sed 's/server pagefold:/server 127.0.0.1:/' nginx/pagefold.conf >"$work/server.conf"
    {
        echo "pid $work/pid; error_log stderr; events {} http { access_log off; include $work/server.conf;"
        for kind in client_body proxy fastcgi uwsgi scgi; do echo "${kind}_temp_path $work/$kind;"; done
        echo "}"
    } >"$work/nginx.conf"
    nginx -q -t -p "$work" -c "$work/nginx.conf"
fi
if has systemd-analyze systemd/pagefold.service; then
    sed 's|/opt/pagefold/bin/pagefold|/bin/true|' systemd/pagefold.service >"$work/pagefold.service"
    systemd-analyze verify --man=no "$work/pagefold.service"
fi
echo "checked"
