# Verifies a signed grant with PyJWT: verify.py JWKS-FILE SINK-ID < signed-grant
import json, sys, jwt

keys = {key["kid"]: jwt.PyJWK(key).key for key in json.load(open(sys.argv[1]))["keys"]}
signed = sys.stdin.read().strip()
try:
    header = jwt.get_unverified_header(signed)
    if header.get("typ") != "tenure-grant+jwt" or header.get("kid") not in keys:
        sys.exit(print("unknown key"))
    claims = jwt.decode(
        signed,
        keys[header["kid"]],
        algorithms=["EdDSA"],
        audience=sys.argv[2],
        # `nbf` and `exp` bound it; `iat` is a moment on the signer's clock, which may go ahead.
        options={"require": ["v", "iss", "sub", "aud", "jti", "epoch", "nbf", "exp"], "verify_iat": False},
    )
    if claims["v"] != 1:
        sys.exit(print("unknown version"))
    # The token, for the fence: in the same transaction as the write.
    print(f"{claims['sub']}@{claims['epoch']}:{claims['jti']}")
except jwt.InvalidTokenError as error:
    print(type(error).__name__)
