//! A fixed RSA key for tests: ring signs with RSA keys but does not make them.

/// The key as PKCS #8 in base64. It protects nothing.
pub(super) const TEST_RSA_KEY: &str = concat!(
    "MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQCdRgDjUmL7AfPXxswvHPzGZK5bYkUVh8ngpGj1FUBluP4Ta4L/wZgoOReyk8",
    "SChr40QIv2O5rRzzwhkVf0tr3tuxwIqXbFgy8B3x2T01gGda/M9uC4tB1Odi7tWnYxCtqbum6MWrILwMvdxdC5rMTBoRWPhanwxvUqRdNI1xVk",
    "bda2zcwajs9Zc60xPqUmAEgbkWo4SLj2ve30PmJ+xKoqq1WmbvGKy3OulV6387zPVH7eq+KYKknWB2LQF3EI2Y/zE5aR4tmkjG7jBtgAixJ36e",
    "/Yt+ivYl8AdJpzXeQgyiDf9jYo59RbzS97vG+Rhxmyprk8JLGtK+Rpsa+x8IX1AgMBAAECggEAB8WpwPiIneK5UN/PcsHKEU9wn5R9WU4i4Sab",
    "oNNb7nFhB2DbRVW+wriB95gk1tYSa6IHwkBGa0Yd/YMUwSoP71uKGNJJfwMRUIeppKBsa7Lm+eHDaW1OCEGzGciyj/bhppHk6UVVu8EoPspW58",
    "ezC3/KtHm31CD8HnD7IYQVJKef0UH7T6qyV25jY1hMSFrQ21bGvk7plA6Wn7nI2Iaq0QmMxV5RQM7BQ2NTn0D8W57aEbf1mgSyS/cHPRtlxpmU",
    "k1+Xtf5MSKrpRuHHbDiG+LZP9lFnyEHLltrXLvQdIHgoq3BXkCHhQW+G5kLDKxSS5ry8HE/n0Kn0eEs5zY+toQKBgQDcB9dKlueTHN85nBO5PQ",
    "GSrEyeJMX+xoLYrzKy2zUjL17A3llqIsauzwWQBmDoypJnEuJikZ521ZTFq7FNg9a09vTIiuEaTuc44lIlhPnp5e8cm61r0OWSZtqKreNREWrE",
    "DN768WvCJo0+da7wwGMRr095/SmBV/D2okzD/9kQhQKBgQC2+89DU5P6wRxXr3d7PpWAC0BtbBM6kv22/B5yDAQvXmxNCCZ1XdJBGHVdyeUQkN",
    "rn27BCfdTsSHh+krO8128Rk4ol2rW3evRctg9kWP9CcjaXpxK/c2yRXETnh9EW+Fkdcn11d2FnEYf4uTeNa8Fo00l9Vt32zJbOlZCwCMPSsQKB",
    "gQDLDk1oH6WsxUtYfipRm/RUqL+4flVez1I3qE+Qce4y/2dhdJFt+pQDBTir9sb+btv3VZ0ovBxSrL60QcPJtm6x6Op0HH6q6cBHZc3LpFGCwt",
    "kNPLopssn6dwMeUmVjDkDKlto9GgmJTkyxJKgCtHl4+6HMAY+JN2BAK/3OL9HhhQKBgAQpAXNUaR7gWRadRKgmqht5JgPW2zEPunj4jnClWUsC",
    "aI/vyYANnAQi3Dg/qNeRk4iF9CHu3nJoy2SFTVTTyRCrPA7URCFhyEB7Wyo648LM+fTEtaZop2U+pcplyhktmEkVG0kaZ7qCKYc8Hsk2U/VgKG",
    "GTIgTEbgFQYTO/X0RhAoGBAM1Ty42bS+Q+TYivqph/6Uu3JOiGYdkDhAmAAcuNmNaS/KCjiextjlCjwr9YXBZBGTmk4Tpq6sBTeYlJ3yQmE2jM",
    "uWDXgmryk01dh7YAeLbWJUu+7I2NebMnAwQkHq7EFRqctg5IAMw6D7EOKGQxL1zv2u916Fmgdwfe49Bm8jE8",
);
