import DownpipeCore
import Foundation
import HangLimit
import Testing

@testable import DownpipeTool

@Suite(.endsHangs)
struct BoardLayoutTests {
  private func layout(_ columns: Int, _ rows: Int = 24) -> BoardLayout {
    BoardLayout(columns: columns, rows: rows, hasColor: false)
  }

  @Test(
    "The row of a file",
    arguments: [
      (
        Samples.status(received: 1 << 20, total: .known(2 << 20), speed: 524_288), 80,
        "film.mkv               ▕██████████▌          ▏  50% 1.00 MiB  512 KiB/s    0:02"
      ),
      (
        Samples.status(received: 512, total: .known(2048)), 60,
        "film.mkv         ▕███▊           ▏  25%    512 B           "
      ),
      (Samples.status(received: 512, total: .known(2048)), 36, "film.mkv  ▕████▌             ▏  25%"),
      (Samples.status(received: 512, total: .known(2048)), 16, "film.mkv  25%"),
      (
        Samples.status(name: "東京の夜景の写真です.jpg", received: 1, total: .known(1)), 60,
        "東京の夜景….jpg  ▕███████████████▏ 100%      1 B           "
      ),
      (
        Samples.status(.processing(step: "Gunzip"), received: 8, total: .known(8)), 80,
        "film.mkv               ▕█████████████████████▏ Gunzip…                         "
      ),
      (
        Samples.status(
          .waiting(
            .retry(
              at: Samples.now.addingTimeInterval(2.6), after: DownloadError(.httpStatus, "the server answered 503")))),
        60, "film.mkv         retrying in 0:03: the server answered 503"
      ),
      (
        Samples.status(
          .waiting(.retry(at: Samples.now.addingTimeInterval(-1), after: DownloadError(.network, "cut\u{1B}[2J\n")))),
        60,
        "film.mkv         retrying in 0:00: cut�[2J�"
      ),
      (Samples.status(name: nil, url: "https://example.org/a/b%20c.bin?x=1"), 30, "b c.bin  ▕▒▒▒▒         ▏     "),
    ])
  func row(_ status: DownloadStatus, _ columns: Int, _ line: String) {
    let shown = layout(columns).row(status, at: Samples.now)
    #expect(shown == line)
  }

  @Test(
    "No line is wider than the terminal, and no frame higher", arguments: [1, 2, 7, 20, 33, 44, 57, 65, 80, 200])
  func bounds(_ columns: Int) {
    let states: [DownloadState] = [
      .transferring, .processing(step: "VerifyChecksum"),
      .waiting(.gate(id: "Online", text: "Online: 有線 no route " + String(repeating: "x", count: 99))),
      .waiting(.retry(at: Samples.now, after: DownloadError(.network, String(repeating: "long ", count: 99)))),
    ]
    let files = states.flatMap { state in
      [ByteCount.known(1 << 40), .unknown].map { total in
        Samples.status(
          state, name: "東京-" + String(repeating: "n", count: 99), received: 1 << 39, total: total, speed: 1e9)
      }
    }
    for rows in [1, 2, 3, 5, 9, 24] {
      for hasColor in [true, false] {
        let layout = BoardLayout(columns: columns, rows: rows, hasColor: hasColor)
        let summary = ["1/99 files", "3 failed", "1 GiB of 2 GiB", "1 GiB/s", "1:40 left"]
        let frame = layout.frame(files, summary: summary, at: Samples.now)
        #expect(frame.count <= max(1, rows - 1))
        for line in frame { #expect(Terminal.width(line) <= max(1, columns - 1), "\(line)") }
      }
    }
  }

  @Test("Downloads without room are counted in one line")
  func overflow() {
    let files = (0..<10).map { Samples.status(name: "file-\($0)") }
    let frame = layout(40, 6).frame(files, summary: ["0/10 files"], at: Samples.now)
    #expect(frame.count == 5)
    #expect(frame[3] == "… and 7 more")
    #expect(frame[4] == "0/10 files")
  }

  @Test("The summary is one line, red after a failure")
  func summary() {
    let summary = ["3/7+ files", "1 failed", "1.00 MiB"]
    #expect(layout(100).frame([], summary: summary, at: Samples.now) == ["3/7+ files · 1 failed · 1.00 MiB"])
    let colored = BoardLayout(columns: 100, rows: 24).frame([], summary: summary, at: Samples.now)
    #expect(colored == ["\u{1B}[31m3/7+ files · 1 failed · 1.00 MiB\u{1B}[0m"])
  }

  /// Rows of a file whose progress is known, 4 cells of the bar wide.
  @Test(
    arguments: [
      (0, "▕    ▏"), (1.0 / 32, "▕▏   ▏"), (0.25, "▕█   ▏"), (0.5, "▕██  ▏"), (0.59375, "▕██▍ ▏"), (0.999, "▕███▉▏"),
      (1, "▕████▏"),
    ] as [(Double, String)])
  func bars(_ fraction: Double, _ bar: String) {
    let status = Samples.status(received: Int64(fraction * 32_000), total: .known(32_000))
    let row = layout(21).row(status, at: Samples.now)
    #expect(row == "film.mkv \(bar)" + ProgressFormat.percent(fraction).rightAligned(to: 5))
  }

  @Test("A transfer of unknown size has a block that moves to and fro")
  func wandering() {
    let rows = (0..<5).map { eighths in
      layout(23).row(Samples.status(), at: Date(timeIntervalSinceReferenceDate: Double(eighths) / 8))
    }
    let bars = rows.map { $0.dropFirst(9).prefix(8) }
    #expect(bars == ["▕▒▒▒▒  ▏", "▕ ▒▒▒▒ ▏", "▕  ▒▒▒▒▏", "▕ ▒▒▒▒ ▏", "▕▒▒▒▒  ▏"])
  }

  @Test("The line of a download that has ended")
  func last() {
    let layout = layout(60)
    #expect(layout.line(Samples.result(bytes: 2048)) == "✓ film.mkv  2.00 KiB")
    #expect(
      layout.line(Samples.result(bytes: 4096, attempts: 2, resumedFrom: 1024))
        == "✓ film.mkv  4.00 KiB, resumed at 1.00 KiB, 2 attempts")
    let error = DownloadError(.digestMismatch, "the bytes are wrong", stage: "VerifyChecksum")
    #expect(
      layout.line(Samples.result(error: error)) == "✗ https://example.org/film.mkv: VerifyChecksum: the bytes are wrong"
    )
  }
}
