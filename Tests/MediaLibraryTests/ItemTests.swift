import Downpipe
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import MediaLibrary

/// The rows of LYF about items.
@Suite(.endsHangs)
struct ItemTests {
  @Test("LYF: a unique key an item, independent of the URL; containsTask(key)")
  func keys() async throws {
    let test = try await TestMedia()
    try await test.open { library in
      #expect(try await !library.contains("film"))
      #expect(try await library.add(test.item("film", path: "a")).isNew)
      try await library.waitForHeldBytes(of: "film")
      // The same URL under another key is another item, and the same key with another URL is the same item.
      #expect(try await library.add(test.item("copy", path: "a")).isNew)
      #expect(try await !library.add(test.item("film", path: "a?session=2")).isNew)
      for key in ["film", "copy"] { #expect(try await library.contains(key)) }
      #expect(try await !library.contains(test.server.url("/a").absoluteString))
      #expect(try await library.items().map(\.id) == ["film", "copy"])
      test.gate.open()
      try await library.downloader.waitUntilIdle()
    }
    #if SQLite
      try await test.open { library in
        let isKnown = try await library.contains("film")
        #expect(isKnown)
      }
    #endif
    await test.shutdown()
  }

  @Test("LYF: free-form info carried with an item")
  func info() async throws {
    let test = try await TestMedia()
    let info = ["title": "Nosferatu – eine Symphonie des Grauens", "poster": "/posters/7?size=\"large\"", "year": ""]
    try await test.open { library in
      var item = test.item("film")
      item.info = info
      try await library.add(item)
      #expect(try await library.items().first?.request.metadata == info)
    }
    #if SQLite
      try await test.open { library in
        let items = try await library.items()
        #expect(items.first?.request.metadata == info)
      }
    #endif
    await test.shutdown()
  }

  @Test("LYF: the item that is running now; all items by creation time; counts")
  func queries() async throws {
    let test = try await TestMedia()
    try await test.open { library in
      #expect(try await library.running() == nil)
      for key in ["c", "a", "b"] { try await library.add(test.item(key)) }
      try await library.waitForHeldBytes(of: "c")
      #expect(try await library.running()?.id == "c")
      #expect(try await library.items().map(\.id) == ["c", "a", "b"])
      #expect(try await library.counts() == [.transferring: 1, .waiting: 2])
      // An item that has changed keeps its place.
      try await library.downloader.pause("a")
      #expect(try await library.items().map(\.id) == ["c", "a", "b"])
      #expect(try await library.counts() == [.transferring: 1, .waiting: 1, .paused: 1])
      test.gate.open()
      try await library.downloader.waitUntilIdle()
      #expect(try await library.running() == nil)
      #expect(try await library.counts() == [.finished: 2, .paused: 1])
    }
    await test.shutdown()
  }

  @Test("LYF: file name from the server; wanted directory below a root (caches or documents)")
  func names() async throws {
    let test = try await TestMedia()
    test.gate.open()
    try await test.open { library in
      for (key, folder) in [("a", "Caches"), ("b", "Documents/Films")] {
        var item = test.item(key)
        item.folder = folder
        let file = try await library.add(item).value
        #expect(file.path == test.root + "/\(folder)/Film of \(key).mp4")
      }
      var outside = test.item("c")
      outside.folder = "../elsewhere"
      await #expect { try await library.add(outside) } throws: { ($0 as? DownloadError)?.code == .unsafePath }
    }
    #expect(try test.folder.read("media/Caches/Film of a.mp4").count == TestMedia.size)
    await test.shutdown()
  }

  @Test("LYF: snapshots handed out are copies; refresh interval is set by the app; one callback with all changed items")
  func changes() async throws {
    let test = try await TestMedia()
    let time = VirtualTime()
    try await test.open(options: DownloaderOptions(time: time)) { library in
      let batches = Watched<[[DownloadStatus]]>([])
      let reader = Task { await library.watch(every: .seconds(5)) { batch in batches.update { $0.append(batch) } } }
      // At first there is nothing.
      await batches.wait { $0.count == 1 }
      await time.sleeper(dueIn: .seconds(5), purpose: .changes)
      for key in ["a", "b", "c"] { try await library.add(test.item(key)) }
      await test.gate.arrivals(1)
      time.advance(by: .milliseconds(4999))
      #expect(batches.value == [[]])
      time.advance(by: .milliseconds(1))
      await batches.wait { $0.count == 2 }
      let copies = try #require(batches.value.last)
      #expect(copies.map(\.id) == ["a", "b", "c"])
      test.gate.open()
      try await library.downloader.waitUntilIdle()
      // The copies are as they were.
      #expect(copies.allSatisfy { $0.state.phase != .finished })
      #expect(batches.value.count == 2)
      await time.sleeper(dueIn: .seconds(5), purpose: .changes)
      time.advance(by: .seconds(5))
      await batches.wait { $0.count == 3 }
      #expect(batches.value.last?.map(\.state.phase) == [.finished, .finished, .finished])
      await library.close()
      await reader.value
    }
    await test.shutdown()
  }
}
