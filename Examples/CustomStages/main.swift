// Four custom stages in one pipeline: swift run CustomStages [FOLDER]
import Downpipe

let folder = CommandLine.arguments.count > 1 ? CommandLine.arguments[1] : "custom-stages"
let downloader = try await Downloader {
  DataURLSource()
  HTTPSource()
  SmallestFirst()
  QuietHours(from: 22, to: 6)
  FileStore(folder, onConflict: .replace)
  CountLines()
}
print(await downloader.pipeline)

let poem = try await downloader.add(
  DownloadRequest("data:text/plain,one%0Atwo%0Athree%0A", destination: .init(name: "poem.txt")))
print("→", try await poem.value.path ?? "")
await downloader.shutdown()
