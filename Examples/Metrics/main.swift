// Downloads what it is told, with metrics for Prometheus: swift run MetricsExample ~/Downloads < urls.txt
import Downpipe
import Foundation

guard CommandLine.arguments.count == 2 else {
  print("usage: MetricsExample <folder>    reads a URL from each line of the standard input")
  exit(2)
}
do {
  let server = try await DownloadServer(folder: CommandLine.arguments[1], port: 9464)
  print("http://127.0.0.1:\(server.port)/metrics")
  while let line = readLine() {
    do { try await server.downloader.add(line) } catch { print(error.localizedDescription) }
  }
  try await server.downloader.waitUntilIdle()
  await server.shutdown()
  print(server.metrics)
} catch {
  print(error.localizedDescription)
  exit(1)
}
