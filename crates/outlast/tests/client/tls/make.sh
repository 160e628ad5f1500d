#!/bin/sh
# Makes the certificates of the TLS test: an authority, and a server of this machine that it vouches for. They are good
# from 2020 to 2120; the key protects nothing.
set -e
work=$(mktemp -d)
key() { openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out "$1"; }
sign() { # REQUEST EXTENSIONS OUT [SELFSIGN]
  openssl ca -batch -notext -config "$work/config" -startdate 20200101000000Z -enddate 21200101000000Z \
    -in "$1" -extensions "$2" -out "$3" $4
}
cat > "$work/config" <<END
[ca]
default_ca = here
[here]
new_certs_dir = $work
database = $work/index
rand_serial = yes
default_md = sha256
policy = any
private_key = $work/authority.key
certificate = authority.pem
[any]
commonName = supplied
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign
[server]
basicConstraints = CA:FALSE
extendedKeyUsage = serverAuth
subjectAltName = DNS:localhost,DNS:tools.test,IP:127.0.0.1
END
touch "$work/index"
key "$work/authority.key"
openssl req -new -key "$work/authority.key" -subj "/CN=Outlast test authority" -out "$work/authority.csr"
sign "$work/authority.csr" authority authority.pem -selfsign
key server.key
openssl req -new -key server.key -subj "/CN=localhost" -out "$work/server.csr"
sign "$work/server.csr" server server.pem
rm -r "$work"
