// Custom stages in two pipelines: swift run CustomStages [FOLDER]
import Downpipe
import Foundation

let folder = CommandLine.arguments.count > 1 ? CommandLine.arguments[1] : "custom-stages"
let downloader = try await Downloader {
  DataURLSource()
  HTTPSource()
  SmallestFirst()
  OneLargeFile()
  QuietHours(from: 22, to: 6)
  FileStore(folder, onConflict: .replace)
  CountLines()
}
print(await downloader.pipeline)

// What a user waits for is fetched at once; what is fetched ahead waits for the end of quiet hours.
let poem = try await downloader.add(
  DownloadRequest(
    "data:text/plain,one%0Atwo%0Athree%0A", intent: .userInitiated, destination: .init(name: "poem.txt")))
print("→", try await poem.value.path ?? "")
let ahead = try await downloader.add(
  DownloadRequest("data:text/plain,four%0A", intent: .prefetch, destination: .init(name: "ahead.txt")))
print("→", try await ahead.status.state)
await downloader.shutdown()

// A step that makes a second file beside its input, which goes where the input goes.
let summaries = try await Downloader {
  DataURLSource()
  FileStore(folder, onConflict: .replace)
  WriteSummary()
}
let story = try await summaries.add(
  DownloadRequest("data:text/plain,Once%20upon%0Aa%20time%0A", destination: .init(name: "story.txt")))
print("→", try await story.value.companions.map(\.path))
await summaries.shutdown()

// Two steps that change the form of the artifact. In the other order they would not compile.
let splitter = try await Downloader {
  DataURLSource()
  FileStore(folder, onConflict: .replace)
  SplitParts(bytes: 4)
  JoinParts()
  SplitParts(bytes: 6)
}
let song = try await splitter.add(
  DownloadRequest("data:text/plain,doremifasolati", destination: .init(name: "song", nameUse: .fallback)))
print("→", try FileManager.default.contentsOfDirectory(atPath: try await song.value.path ?? "").sorted())
await splitter.shutdown()
