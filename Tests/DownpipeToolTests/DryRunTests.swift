import Downpipe
import DownpipeTesting
import Foundation
import Testing

@testable import DownpipeTool

@Suite(.timeLimit(.minutes(1)))
struct DryRunTests {
  @Test("The line of JSON has every key")
  func line() {
    var forecast = DryRun.Forecast(id: "00000000deadbeef", url: "http://a/film", path: "/d/film", total: .known(7))
    forecast.isResumable = true
    #expect(
      DryRun.line(forecast) == #"{"event":"dryRun","id":"00000000deadbeef","url":"http://a/film","path":"/d/film","#
        + #""total":7,"resumable":true,"taken":false,"state":null,"bytes":0,"error":null}"#)
  }

  @Test("A whole reply to a range request means that the download cannot be resumed")
  func forecasts() async throws {
    let server = try await ScriptedHTTPServer.start { request in
      switch request.path {
      case "/ranges": .file(.pattern(size: 1000), etag: "\"1\"", name: "film.mkv", for: request)
      case "/whole.csv.gz": .file(.pattern(size: 1000), supportsRanges: false, for: request)
      case "/empty": .file(.bytes([]), for: request)
      default: .status(404)
      }
    }
    let folder = try TemporaryFolder()
    try folder.write([1], to: "film.mkv")
    let plan = try GetPlan(urls: ["u"], steps: RequestSteps(gunzips: true))
    let run = DryRun(
      plan: plan, settings: PipelineSettings(directory: folder.path), isJSON: true, isQuiet: false)
    let source = try await HTTPSource().start(in: SourceContext())
    let forecasts = try await ["/ranges", "/whole.csv.gz", "/empty", "/missing"].asyncMap {
      try await run.forecast("\(server.url($0))", source, nil)
    }
    await source.stop()
    await server.shutdown()
    #expect(forecasts.map(\.total) == [.known(1000), .known(1000), .known(0), .unknown])
    #expect(forecasts.map(\.isResumable) == [true, false, true, nil])
    #expect(forecasts.map(\.isTaken) == [true, false, false, false])
    #expect(forecasts.map(\.path) == ["film.mkv", "whole.csv", "empty"].map(folder.path) + [nil])
    #expect(forecasts.last?.error?.code == .httpStatus)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["film.mkv"])
  }

  @Test(
    "The name of a gzip file is that which Gunzip gives it",
    arguments: [("a.csv.gz", "a.csv"), ("a.TGZ", "a.tar"), ("a.svgz", "a.svg"), (".gz", ".gz"), ("a.zip", "a.zip")])
  func names(_ suggested: String, _ name: String) throws {
    func run(_ gunzips: Bool, output: String? = nil) throws -> DryRun {
      var plan = try GetPlan(urls: ["u"], outputName: output)
      plan.steps = RequestSteps(gunzips: gunzips)
      return DryRun(plan: plan, settings: PipelineSettings(directory: "/d"), isJSON: true, isQuiet: false)
    }
    #expect(try run(true).finishedName(suggested) == name)
    #expect(try run(false).finishedName(suggested) == suggested)
    #expect(try run(true, output: "b.gz").finishedName(suggested) == "b.gz")
  }

  @Test("Each policy for an existing file has its own words", arguments: ConflictPolicy.allCases)
  func policies(_ policy: ConflictPolicy) throws {
    var forecast = DryRun.Forecast(id: "a", url: "http://a/film", path: "/d/film", total: .unknown)
    forecast.isResumable = false
    forecast.received = 2048
    let run = DryRun(
      plan: try GetPlan(urls: ["u"]), settings: PipelineSettings(directory: "/d", conflict: policy), isJSON: false,
      isQuiet: false)
    let free = run.sentence(forecast)
    #expect(free == "/d/film: unknown size, cannot be resumed; 2.00 KiB received already")
    forecast.isTaken = true
    let words: [ConflictPolicy: String] = [
      .keepBoth: "gets a number", .replace: "replaces", .fail: "fails", .reuse: "may be used",
    ]
    let word = try #require(words[policy])
    #expect(run.sentence(forecast).contains(word))
  }
}

extension Sequence {
  fileprivate func asyncMap<T>(_ transform: (Element) async throws -> T) async rethrows -> [T] {
    var results: [T] = []
    for element in self { results.append(try await transform(element)) }
    return results
  }
}
