//! Requests that are mostly not HTTP.

use assay_oracle::hostile::texts;

use crate::generator::Generator;

impl Generator<'_> {
    /// Bytes that are mostly not a request.
    pub(crate) fn noise(&mut self) -> Vec<u8> {
        let mut bytes = self.draft().bytes();
        match self.dice.between(0, 9) {
            0 => (0..self.dice.between(1, 400))
                .map(|_| self.dice.bits() as u8)
                .collect(),
            1 => b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            2 => b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".repeat(40),
            3 => [
                b"GET /api/v1/projects HTTP/".as_slice(),
                self.word(&["9.9", "0.9", "2.0", "1.", "x.y"]).as_bytes(),
                b"\r\n\r\n",
            ]
            .concat(),
            4 => {
                let many = self.dice.between(90, 3_000) as usize;
                let field = self.word(&["A: b\r\n", "Authorization: Bearer x\r\n", "Host: a\r\n"]);
                format!("GET /api/v1/projects HTTP/1.1\r\n{}\r\n", field.repeat(many)).into_bytes()
            }
            5 => {
                let long = "a".repeat(self.dice.between(4_000, 200_000) as usize);
                let request = self.word(&texts("longRequests"));
                request.replace("LONG", &long).into_bytes()
            }
            6 => {
                let field = self.word(&texts("framing"));
                format!("GET /api/v1/projects HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n0\r\n\r\n").into_bytes()
            }
            7 => {
                let target = self.word(&texts("targets"));
                let method = self.word(&["GET", "OPTIONS", "CONNECT", "POST"]);
                format!("{method} {target} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes()
            }
            8 => {
                bytes.truncate(self.dice.between(1, bytes.len() as i64) as usize);
                bytes.extend_from_slice(b"\r\n\r\n");
                bytes
            }
            _ => {
                self.mutate(&mut bytes);
                bytes.extend_from_slice(b"\r\n\r\n");
                bytes
            }
        }
    }
}
