import DownpipeCore
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct ProgressFormatTests {
  // MARK: Bytes

  @Test(
    "units of 1,024",
    arguments: [
      (0, "0 B"), (1, "1 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (1536, "1.50 KiB"), (10_239, "10.0 KiB"),
      (102_400, "100 KiB"), (1_048_063, "1023 KiB"), (1_048_064, "1.00 MiB"), (1 << 20, "1.00 MiB"),
      (1 << 30, "1.00 GiB"), (24_536_678, "23.4 MiB"), (Int64.max, "8.00 EiB"), (-5, "0 B"),
    ] as [(Int64, String)])
  func binary(_ bytes: Int64, _ text: String) {
    #expect(ByteFormat.binary.format(bytes) == text)
    #expect(bytes.formatted(ByteFormat.binary) == text)
    #expect(ByteFormat.kilobytes1024.format(bytes) == text.replacing("i", with: ""))
  }

  @Test(
    "units of 1,000",
    arguments: [
      (999, "999 B"), (1000, "1.00 KB"), (1005, "1.00 KB"), (1006, "1.01 KB"), (9_994, "9.99 KB"), (9_995, "10.0 KB"),
      (99_949, "99.9 KB"), (99_950, "100 KB"), (999_499, "999 KB"), (999_500, "1.00 MB"), (1_500_000_000, "1.50 GB"),
      (Int64.max, "9.22 EB"),
    ] as [(Int64, String)])
  func decimal(_ bytes: Int64, _ text: String) { #expect(ByteFormat.decimal.format(bytes) == text) }

  @Test(
    "one decimal, rounded down, and no unit above the largest",
    arguments: [
      (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KB"), (1_048_575, "1023.9 KB"), (1_048_576, "1.0 MB"),
      (1_610_612_736, "1536.0 MB"),
    ] as [(Int64, String)])
  func largest(_ bytes: Int64, _ text: String) {
    #expect(ByteFormat(.kilobytes1024, largest: .mega, precision: .oneDecimal).format(bytes) == text)
    #expect(ByteFormat(.binary, largest: .one).format(bytes) == "\(bytes) B")
  }

  @Test("no byte count is wider than its column", arguments: [ByteFormat.binary, .decimal, .kilobytes1024])
  func width(format: ByteFormat) {
    var bytes: Int64 = 1
    while bytes < Int64.max / 16 {
      for near in [bytes - 1, bytes, bytes + 1, bytes * 2 - 1] {
        #expect(format.format(near).count <= 8)
        #expect(format.speed(Double(near)).count <= 10)
      }
      bytes = bytes * 5 / 4 + 1
    }
  }

  @Test(
    arguments: [
      (nil, "–"), (0, "0 B/s"), (1500, "1.46 KiB/s"), (Double.infinity, "–"), (.nan, "–"), (-1, "–"),
      (1e30, "7.81 EiB/s"),
    ] as [(Double?, String)])
  func speed(_ speed: Double?, _ text: String) { #expect(ByteFormat.binary.speed(speed) == text) }

  @Test func counts() {
    #expect(ByteCount.known(2048).formatted() == "2.00 KiB")
    #expect(ByteCount.known(2000).formatted(.decimal) == "2.00 KB")
    #expect(ByteCount.unknown.formatted() == "–")
  }

  // MARK: Progress

  @Test(
    "the remaining time is rounded up",
    arguments: [
      (0, "0:00"), (7, "0:07"), (6.001, "0:07"), (754, "12:34"), (3723, "1:02:03"), (86_399, "23:59:59"),
      (86_399.5, "1d 00h"), (273_600, "3d 04h"), (8_640_000, ">99d"), (-3, "0:00"), (-0.5, "0:00"),
    ] as [(Double, String)])
  func timeLeft(_ seconds: Double, _ text: String) { #expect(TimeLeftFormat().format(.seconds(seconds)) == text) }

  @Test(
    "only a complete transfer has 100%",
    arguments: [(0.0, "0%"), (0.999999, "99%"), (1, "100%"), (1.5, "100%"), (-1, "0%")] as [(Double, String)])
  func percent(_ fraction: Double, _ text: String) { #expect(ProgressFormat.percent(fraction) == text) }

  @Test func aLineSaysWhatIsKnown() {
    var progress = TransferProgress(received: 3 << 19)
    #expect(progress.formatted() == "1.50 MiB")
    progress.total = .known(1 << 22)
    #expect(progress.formatted() == "1.50 MiB of 4.00 MiB  37%")
    progress.bytesPerSecond = 812 * 1024
    #expect(progress.formatted() == "1.50 MiB of 4.00 MiB  37%  812 KiB/s  0:04 left")
    #expect(
      progress.formatted(ProgressFormat(bytes: .decimal, separator: ", "))
        == "1.57 MB of 4.19 MB, 37%, 831 KB/s, 0:04 left")
    progress.bytesPerSecond = 0
    #expect(progress.formatted() == "1.50 MiB of 4.00 MiB  37%  0 B/s")
  }
}
