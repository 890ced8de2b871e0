// A film behind links that expire within seconds, at two hosts: swift run ExpiringLinks [FOLDER]
import Downpipe
import DownpipeTesting
import Foundation

let folder = CommandLine.arguments.count > 1 ? CommandLine.arguments[1] : "expiring-links"
let film = ScriptedContent.pattern(size: 7_000_000, seed: 8)

for etag in ["\"film-v1\"", nil] {
  print(etag.map { "Both hosts send the entity tag \($0)." } ?? "\nNeither host sends an entity tag.")
  print("first link at east")
  let east = try await CDN.start(
    "east", film: film, etag: etag, speed: 1_000_000, refusal: .forbidden, time: .wall)
  let west = try await CDN.start(
    "west", film: film, etag: etag, speed: 1_000_000, refusal: .logInPage, time: .wall)
  let links = LinkService(
    [
      .init(host: east, form: .stated, seconds: 1.5), .init(host: west, form: .hidden, seconds: 1.5),
      .init(host: east, form: .hidden, seconds: 1.5),
    ], now: ServerTime.wall.now)

  let status = try await FilmDownload.run(
    into: folder, links: links, time: .wall, watchedBy: Narrator(hosts: [east, west]))
  let bytes = try Data(contentsOf: URL(filePath: status.artifact?.path ?? ""))
  print(
    """
    \(bytes.elementsEqual(film.allBytes) ? "Byte-identical" : "WRONG"): \(bytes.count) bytes over \
    \(await links.count) links, \(status.bytesFetched) bytes fetched in total.
    """)
  await east.server.shutdown()
  await west.server.shutdown()
}
