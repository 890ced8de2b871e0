import DownpipeCore
import Foundation
import Testing

@testable import DownpipeTool

@Suite(.timeLimit(.minutes(1)))
struct ProgressRendererTests {
  private let plain = ProgressRenderer.Style(hasColor: false)

  private func renderer(_ columns: Int, _ rows: Int = 24) -> ProgressRenderer {
    ProgressRenderer(columns: columns, rows: rows, style: plain)
  }

  private func tally(_ finished: Int, _ total: Int, failed: Int = 0, isComplete: Bool = true) -> Tally {
    Tally(total: total, finished: finished, failed: failed, startedAt: Samples.now, isComplete: isComplete)
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
        60, "film.mkv         again in 2.6 s: the server answered 503"
      ),
      (
        Samples.status(
          .waiting(.retry(at: Samples.now.addingTimeInterval(-1), after: DownloadError(.network, "cut\u{1B}[2J\n")))),
        60,
        "film.mkv         again now: cut�[2J�"
      ),
      (Samples.status(name: nil, url: "https://example.org/a/b%20c.bin?x=1"), 30, "b c.bin  ▕▒▒▒▒         ▏     "),
    ])
  func row(_ status: DownloadStatus, _ columns: Int, _ line: String) {
    let shown = renderer(columns).row(status, at: Samples.now)
    #expect(shown == line)
  }

  @Test(
    "No line is ever wider than the terminal, nor the frame higher", arguments: [1, 2, 7, 20, 33, 44, 57, 65, 80, 200])
  func bounds(_ columns: Int) {
    let states: [DownloadState] = [
      .transferring, .processing(step: "VerifyChecksum"),
      .waiting(.gate("Online: 有線 no route " + String(repeating: "x", count: 99))),
      .waiting(.retry(at: Samples.now, after: DownloadError(.network, String(repeating: "long ", count: 99)))),
    ]
    let files = states.flatMap { state in
      [ByteCount.known(1 << 40), .unknown].map { total in
        Samples.status(
          state, name: "東京-" + String(repeating: "n", count: 99), received: 1 << 39, total: total, speed: 1e9)
      }
    }
    for rows in [1, 2, 3, 5, 9, 24] {
      for style in [
        plain, ProgressRenderer.Style(hasColor: true), ProgressRenderer.Style(hasColor: false, isASCII: true),
      ] {
        let renderer = ProgressRenderer(columns: columns, rows: rows, style: style)
        var total = TotalLine(tally: tally(1, 99, failed: 3))
        total.bytes = "1 GiB of 2 GiB"
        total.bytesPerSecond = 1e9
        total.timeRemaining = .seconds(100)
        let frame = renderer.frame(files: files, total: total, at: Samples.now)
        #expect(frame.count <= max(1, rows - 1))
        for line in frame { #expect(Terminal.width(line) <= max(1, columns - 1), "\(line)") }
        if style.isASCII { #expect(frame.allSatisfy { $0.allSatisfy(\.isASCII) }) }
      }
    }
  }

  @Test("What does not fit is summed up")
  func overflow() {
    let files = (0..<10).map { Samples.status(name: "file-\($0)") }
    let frame = renderer(40, 6).frame(files: files, total: TotalLine(tally: tally(0, 10)), at: Samples.now)
    #expect(frame.count == 5)
    #expect(frame[3] == "… and 7 more")
    #expect(frame[4] == "0/10 files")
  }

  @Test("The line of the whole")
  func whole() {
    var total = TotalLine(tally: tally(3, 7, failed: 1, isComplete: false))
    total.bytes = "1.00 MiB"
    total.bytesPerSecond = 2048
    total.timeRemaining = .seconds(61)
    total.isEstimate = true
    let frame = renderer(100).frame(files: [], total: total, at: Samples.now)
    #expect(frame == ["3/7+ files · 1 failed · 1.00 MiB · 2.00 KiB/s · about 1:01 left"])
  }

  @Test("The line that stays of a file")
  func last() {
    let renderer = renderer(60)
    #expect(renderer.line(Samples.word(bytes: 2048)) == "✓ film.mkv  2.00 KiB")
    #expect(
      renderer.line(Samples.word(bytes: 4096, attempts: 2, resumedFrom: 1024))
        == "✓ film.mkv  4.00 KiB, resumed at 1.00 KiB, 2 attempts")
    let error = DownloadError(.digestMismatch, "the bytes are wrong", stage: "VerifyChecksum")
    #expect(
      renderer.line(Samples.word(error: error)) == "✗ https://example.org/film.mkv: VerifyChecksum: the bytes are wrong"
    )
  }

  @Test("Colours go when NO_COLOR is set, blocks where the charset has none")
  func environment() {
    #expect(ProgressRenderer.Style(environment: [:]) == .init(hasColor: true, isASCII: false))
    #expect(ProgressRenderer.Style(environment: ["NO_COLOR": "1"]).hasColor == false)
    #expect(ProgressRenderer.Style(environment: ["NO_COLOR": ""]).hasColor)
    #expect(ProgressRenderer.Style(environment: ["LANG": "de_DE.UTF-8"]).isASCII == false)
    #expect(ProgressRenderer.Style(environment: ["LANG": "de_DE.UTF-8", "LC_ALL": "de_DE.ISO-8859-1"]).isASCII)
    #expect(ProgressRenderer.Style(environment: ["LANG": "C"]).isASCII == false)
  }
}
