import Testing

@testable import downpipe

@Suite(.timeLimit(.minutes(1)))
struct FormattingTests {
  @Test(
    arguments: [
      (0, "0 B"), (1, "1 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (1536, "1.50 KiB"), (10_239, "10.0 KiB"),
      (102_400, "100 KiB"), (1_048_063, "1023 KiB"), (1_048_064, "1.00 MiB"), (1 << 20, "1.00 MiB"),
      (1 << 30, "1.00 GiB"),
      (24_536_678, "23.4 MiB"), (Int64.max, "8.00 EiB"), (-5, "0 B"),
    ] as [(Int64, String)])
  func bytes(_ bytes: Int64, _ text: String) {
    #expect(Formatting.bytes(bytes) == text)
    #expect(text.count <= 8)
  }

  @Test("No number of bytes is wider than its column")
  func width() {
    var bytes: Int64 = 1
    while bytes < Int64.max / 16 {
      for near in [bytes - 1, bytes, bytes + 1, bytes * 2 - 1] { #expect(Formatting.bytes(near).count <= 8) }
      bytes = bytes * 5 / 4 + 1
    }
  }

  @Test(
    arguments: [
      (nil, "–"), (0, "0 B/s"), (1500, "1.46 KiB/s"), (Double.infinity, "–"), (-1, "–"), (1e30, "7.81 EiB/s"),
    ] as [(Double?, String)])
  func speed(_ speed: Double?, _ text: String) { #expect(Formatting.speed(speed) == text) }

  @Test(arguments: [
    (0, "0:00"), (7, "0:07"), (754, "12:34"), (3723, "1:02:03"), (86_399, "23:59:59"), (86_400, "1d 00h"),
    (273_600, "3d 04h"), (8_640_000, ">99d"), (-3, "0:00"),
  ])
  func duration(_ seconds: Int, _ text: String) { #expect(Formatting.duration(.seconds(seconds)) == text) }

  @Test(
    arguments: [(0, "0.0 s"), (0.44, "0.4 s"), (9.9, "9.9 s"), (9.96, "10 s"), (59.4, "59 s"), (61, "1:01")]
      as [(Double, String)])
  func seconds(_ seconds: Double, _ text: String) { #expect(Formatting.seconds(.seconds(seconds)) == text) }

  @Test(
    "Only what is complete is 100%",
    arguments: [(0.0, "0%"), (0.999999, "99%"), (1, "100%"), (1.5, "100%"), (-1, "0%")] as [(Double, String)])
  func percent(_ fraction: Double, _ text: String) { #expect(Formatting.percent(fraction) == text) }
}
