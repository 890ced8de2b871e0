import Foundation

/// What the inputs are.
enum Format: String, CaseIterable {
  case checksums, metalink, minisign, archive, disposition, template

  /// The first inputs.
  var seeds: [[UInt8]] {
    switch self {
    case .checksums:
      [
        "d41d8cd98f00b204e9800998ecf8427e  empty\n\\d41d8cd98f00b204e9800998ecf8427e *a\\\\b\\nc\n",
        "SHA256 (a (b)) = e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\r\nSIZE (a) = 5\r\n",
        "# comment\n\nda39a3ee5e6b4b0d3255bfef95601890afd80709\n",
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\nd41d8cd98f00b204e9800998ecf8427e  - a\n"
          + "-----BEGIN PGP SIGNATURE-----\n\niQ==\n=abcd\n-----END PGP SIGNATURE-----\n",
      ].map { Array($0.utf8) }
    case .metalink:
      [
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="a/b.iso"><size>5</size>
        <hash type="sha-256">e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855</hash>
        <pieces length="2" type="sha-1"><hash>da39a3ee5e6b4b0d3255bfef95601890afd80709</hash></pieces>
        <url location="de" priority="1">https://a.example/b?c&amp;d=&#x41;</url><!-- x --><![CDATA[y]]>
        <metaurl mediatype="torrent">https://a.example/t</metaurl></file></metalink>
        """,
        """
        <metalink version="3.0" xmlns="http://www.metalinker.org/"><files><file name="b"><verification>
        <hash type="md5">d41d8cd98f00b204e9800998ecf8427e</hash></verification><resources>
        <url type="http" preference="100">http://a.example/b</url></resources></file></files></metalink>
        """,
      ].map { Array($0.utf8) }
    case .minisign:
      [
        """
        untrusted comment: signature
        RUQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
        trusted comment: timestamp:1\tfile:a
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==
        """, "RWQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        "-----BEGIN PGP SIGNATURE-----\n\niQ==\n=abcd\n-----END PGP SIGNATURE-----\n",
      ].map { Array($0.utf8) }
    // Programs write them; see `.ci/long`.
    case .archive: []
    case .disposition:
      [
        "attachment; filename=\"a b.txt\"; filename*=UTF-8''%e2%82%ac%20rates", "inline; filename==?utf-8?B?w6Q=?=",
        "attachment; filename=\"a\\\"b%41.txt", "form-data; name=x; filename*0=a; filename*1*=%20b",
        "filename=../../etc",
        "https://a.example/b%2fc/..%5cd?e#f",
      ].map { Array($0.utf8) }
    case .template:
      ["/tmp/x/{host}/{year}/{name}", "{stem}-{metadata:a/b}{extension}", "~/{{{id}}}/{month}", "a/../{name}/.."].map {
        Array($0.utf8)
      }
    }
  }

  func writeSeeds(to folder: URL) -> Bool {
    do {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      for (number, seed) in seeds.enumerated() { try Data(seed).write(to: folder.appending(path: "seed\(number)")) }
      return true
    } catch {
      return false
    }
  }
}
