#if os(Linux) || os(macOS)
  import ChildPipe
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipeAppleResumeData

  /// Python's plistlib, an independent implementation, reads the data written here and writes data to read.
  @Suite(.endsHangs)
  struct OracleTests {
    /// Runs a program in Python and returns what it prints.
    static func python(_ program: String, _ arguments: [String]) throws -> String {
      let process = Process()
      process.executableURL = URL(filePath: "/usr/bin/env")
      process.arguments = ["python3", "-c", program] + arguments
      let output = try ChildPipe()
      try process.run(output: output)
      let text = try output.fileHandleForReading.readToEnd() ?? Data()
      process.waitUntilExit()
      try #require(
        process.terminationStatus == 0,
        "python3 failed: these tests need python3, 3.8 or later, in the PATH (status \(process.terminationStatus))")
      return String(decoding: text, as: UTF8.self)
    }

    /// Prints the facts of resume data that plistlib finds, walking the archives on its own.
    static let describe = """
      import plistlib, sys
      def load(data):
          # Core Foundation's way to write references into XML is not plistlib's.
          def fix(v):
              if isinstance(v, dict):
                  if set(v) == {'CF$UID'}: return plistlib.UID(v['CF$UID'])
                  return {k: fix(x) for k, x in v.items()}
              return [fix(x) for x in v] if isinstance(v, list) else v
          return fix(plistlib.loads(data))
      def follow(objects, v):
          if isinstance(v, plistlib.UID): v = objects[v.data]
          if isinstance(v, str) and v == '$null': return None
          if isinstance(v, dict) and '$class' in v:
              name = objects[v['$class'].data]['$classname']
              if 'Dictionary' in name:
                  keys = [follow(objects, k) for k in v['NS.keys']]
                  return dict(zip(keys, [follow(objects, o) for o in v['NS.objects']]))
              if name == 'NSURL': return (follow(objects, v['NS.base']) or '') + follow(objects, v['NS.relative'])
              if 'NS.data' in v: return follow(objects, v['NS.data'])
              if 'NS.string' in v: return follow(objects, v['NS.string'])
          return v
      def request(data):
          a = load(data)
          o = a['$objects']
          (top, root), = a['$top'].items()
          r = o[root.data]
          named = '__nsurlrequest_proto_prop_obj_1' in r
          n = r['$2']
          get = lambda i: follow(o, r['__nsurlrequest_proto_prop_obj_%d' % i if named else '$%d' % (i + 3)])
          props = r['__nsurlrequest_proto_props' if named else '$%d' % (n + 3)]
          assert props == plistlib.UID(0) and r['$0'] == 2
          assert o[r['$class'].data]['$classname'] in ('NSURLRequest', 'NSMutableURLRequest')
          return '%s %d %s %s %s' % (top, n, get(1), get(18) if n == 22 else 'GET',
                                     sorted((get(19) or {}).items()) if n == 22 else [])
      d = load(open(sys.argv[1], 'rb').read())
      if '$archiver' in d:
          o = d['$objects']
          d = follow(o, d['$top']['NSKeyedArchiveRootObjectKey'])
      for k in sorted(d):
          print(k, request(d[k]) if k.endswith('Request') else d[k])
      """

    static func description(_ data: Data) throws -> String {
      let folder = try TemporaryFolder()
      defer { folder.close() }
      return try python(describe, [try folder.write(Array(data), to: "list")])
    }

    @Test(
      "plistlib reads what is written", arguments: [AppleResumeData.Format.xml, .binary], [false, true])
    func written(_ format: AppleResumeData.Format, _ isArchived: Bool) throws {
      let url = try #require(URL(string: Samples.url))
      let data = try AppleResumeData(
        url: url, bytesReceived: 1 << 33, entityTag: EntityTag("ä"), lastModified: HTTPDate.date(from: Samples.date),
        localFile: "film.part", version: 4, headers: ["X-Client": "Zoë <films>"], format: format, isArchived: isArchived
      )
      let top = isArchived ? "NSKeyedArchiveRootObjectKey" : "root"
      #expect(
        try Self.description(data.data()) == """
          NSURLSessionDownloadURL \(Samples.url)
          NSURLSessionResumeBytesReceived 8589934592
          NSURLSessionResumeCurrentRequest \(top) 22 \(Samples.url) GET [('Range', 'bytes=8589934592-'), ('X-Client', 'Zoë <films>')]
          NSURLSessionResumeEntityTag "ä"
          NSURLSessionResumeInfoTempFileName film.part
          NSURLSessionResumeInfoVersion 4
          NSURLSessionResumeOriginalRequest \(top) 22 \(Samples.url) GET [('X-Client', 'Zoë <films>')]
          NSURLSessionResumeServerDownloadDate \(Samples.date)

          """)
    }

    @Test("plistlib finds the same before and after a round trip", arguments: WritingTests.samples)
    func roundTrips(_ sample: (String, Data)) throws {
      let data = try AppleResumeData(sample.1)
      let before = try Self.description(sample.1)
      #expect(before.contains("NSURLSessionResumeBytesReceived 68188"))
      for format in [AppleResumeData.Format.xml, .binary] {
        // References to objects of unknown classes have other numbers.
        func comparable(_ text: String) -> [Substring] {
          text.split(separator: "\n").filter { !$0.hasPrefix("Odd") && !$0.hasPrefix("Unknown") }
        }
        #expect(comparable(try Self.description(data.data(format: format))) == comparable(before))
      }
    }

    @Test("plistlib finds the repaired request and the new link")
    func changed() throws {
      var data = try AppleResumeData(WritingTests.broken).repaired()
      try data.refresh(url: try #require(URL(string: "https://cdn.example/film?sig=1")), headers: ["A": "b"])
      let text = try Self.description(data.data())
      #expect(
        text.contains(
          "CurrentRequest root 22 https://cdn.example/film?sig=1 GET [('A', 'b'), ('Range', 'bytes=68188-')]"))
      #expect(text.contains("OriginalRequest root 22 https://cdn.example/film?sig=1 GET [('A', 'b')]"))
    }

    /// Writes resume data as a keyed archive, or as a plain list with archived requests in the form of iOS 10.0.
    static let make = """
      import plistlib, sys, datetime
      U = plistlib.UID
      fmt = plistlib.FMT_BINARY
      def request(url, headers):
          o = ['$null', None, False, {'NS.base': U(0), 'NS.relative': U(4), '$class': U(5)}, url,
               {'$classname': 'NSURL', '$classes': ['NSURL', 'NSObject']}, 60.0, 0, True, 4, 0.0, -1, 2, 'GET']
          keys, values = [], []
          for k, v in headers.items():
              keys.append(U(len(o))); o.append(k)
              values.append(U(len(o))); o.append(v)
          names = ['NSMutableDictionary', 'NSDictionary', 'NSObject']
          o.append({'$classname': names[0], '$classes': names})
          o.append({'NS.keys': keys, 'NS.objects': values, '$class': U(len(o) - 1)})
          dictionary = len(o) - 1
          o.append({'$classname': 'NSURLRequest', '$classes': ['NSURLRequest', 'NSObject']})
          objs = [2, 3, 6, 7, 0, 8, 9, 0, 0, 8, 2, 7, 10, 10, 7, 11, 0, 12, 13, dictionary, 0, 0]
          r = {'$0': 2, '$1': 9, '$2': 22, '$class': U(len(o) - 1), '__nsurlrequest_proto_props': U(0)}
          for i, n in enumerate(objs): r['__nsurlrequest_proto_prop_obj_%d' % i] = U(n)
          o[1] = r
          return plistlib.dumps({'$version': 100000, '$archiver': 'NSKeyedArchiver', '$objects': o,
                                 '$top': {'NSKeyedArchiveRootObjectKey': U(1)}}, fmt=fmt)
      info = {
          'NSURLSessionDownloadURL': 'https://example.org/Zo\\u00eb',
          'NSURLSessionResumeBytesReceived': 2 ** 40,
          'NSURLSessionResumeEntityTag': 'W/"a"',
          'NSURLSessionResumeInfoTempFileName': 'Zo\\u00eb.tmp',
          'NSURLSessionResumeInfoVersion': 4,
          'NSURLSessionResumeCurrentRequest': request('https://example.org/a', {'A': 'b', 'C': '\\u00e9'}),
          'NSURLSessionResumeOriginalRequest': request('https://example.org/a', {}),
          'Date': datetime.datetime(2016, 5, 12, 2, 41, 27), 'Big': 2 ** 64 - 1, 'Negative': -2 ** 63, 'Real': 0.1,
          'Many': list(range(300)), 'Long': 'x' * 70000, 'Empty': b'',
      }
      if sys.argv[2] == 'archive':
          o = ['$null', None]
          keys, values = [], []
          for k, v in info.items():
              if isinstance(v, (list, datetime.datetime)): continue
              keys.append(U(len(o))); o.append(k)
              values.append(U(len(o))); o.append(v)
          o[1] = {'NS.keys': keys, 'NS.objects': values, '$class': U(len(o))}
          o.append({'$classname': 'NSDictionary', '$classes': ['NSDictionary', 'NSObject']})
          info = {'$version': 100000, '$archiver': 'NSKeyedArchiver', '$objects': o,
                  '$top': {'NSKeyedArchiveRootObjectKey': U(1)}}
      open(sys.argv[1], 'wb').write(plistlib.dumps(info, fmt=plistlib.FMT_XML if sys.argv[2] == 'xml' else fmt))
      """

    @Test("data written by plistlib is read", arguments: ["xml", "binary", "archive"])
    func readBack(_ kind: String) throws {
      let folder = try TemporaryFolder()
      defer { folder.close() }
      _ = try Self.python(Self.make, [folder.path("list"), kind])
      let data = try AppleResumeData(Data(try folder.read("list")))
      #expect(data.isArchived == (kind == "archive"))
      #expect(data.needsRepair == (kind != "archive"))
      #expect(data.url.absoluteString.hasPrefix("https://example.org/Zo"))
      #expect(data.bytesReceived == 1 << 40)
      #expect(data.fileName == "Zoë.tmp")
      #expect(data.validator.entityTag == EntityTag("a", isWeak: true))
      #expect(data.currentRequest?.headers == ["A": "b", "C": "é"])
      #expect(data.originalRequest?.headers == [])
      #expect(data.info["Big"] == .integer(Int128(UInt64.max)))
      #expect(data.info["Negative"] == .integer(Int128(Int64.min)))
      #expect(data.info["Real"] == .real(0.1))
      #expect(data.info["Long"]?.string?.utf8.count == 70_000)
      #expect(data.info["Empty"] == .data(Data()))
      if kind != "archive" {
        #expect(data.info["Many"]?.array?.count == 300)
        #expect(data.info["Many"]?.array?.last == .integer(299))
        #expect(data.info["Date"] == .date(484_713_687))
      }
    }
  }
#endif
