"""Conversion of 8-bit content to 7-bit content, part by part (RFC 6152 3, RFC 2045, RFC 2046). Pure.

Content goes through in pieces, three times: it is measured (`Analysis`), converted for the comparison with the original
(`Conversion` and `Proof`), and converted on its way to the host. Memory does not depend on its size.

Modules, bottom first:

    refusal     why a message can't be converted
    dots        dot-stuffing in pieces
    fields      the header of a part: what it says of the part's body, and a new Content-Transfer-Encoding
    structure   content to headers, bodies and the lines between them
    encoding    quoted-printable and base64 in pieces, both ways
    fingerprint what a conversion must not change, as a digest
    plan        what is done with each part: the analysis of a message
    apply       the conversion by a plan, and its proof
"""
