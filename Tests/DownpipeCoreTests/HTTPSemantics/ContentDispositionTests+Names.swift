extension ContentDispositionTests {
  /// Headers and the names they mean. Where browsers differ, the comment says which one decides.
  static let names: [(String, String)] = [
    // Plain values.
    ("attachment; filename=\"foo.html\"", "foo.html"),
    ("inline;filename=foo.html ;", "foo.html"),
    ("attachment; FileName = \"foo.html\"", "foo.html"),
    ("filename \t =\tfoo.html", "foo.html"),
    ("attachment; ;filename=foo", "foo"),
    ("x=y; filename=foo.html", "foo.html"),
    ("filename=foo.html; attachment", "foo.html"),
    ("; filename=foo.html", "foo.html"),
    ("attachment; filename=\"a; b=c.txt\"", "a; b=c.txt"),
    ("attachment; filename=abc,de.pdf", "abc,de.pdf"),
    ("attachment; filename=foo[1](2).html", "foo[1](2).html"),
    ("attachment; filename='foo.bar'", "'foo.bar'"),
    ("attachment; filename=first; filename=second", "first"),
    ("attachment; filename=; filename=second", "second"),
    ("attachment; filename=foo; trouble", "foo"),
    // Chromium: a value without quotation marks ends at the semicolon. Firefox ends it at a blank.
    ("attachment; filename=two words.txt", "two words.txt"),
    ("filename=foo.html, filename=bar.html", "foo.html, filename=bar.html"),
    ("attachment; filename=foo.html, attachment; filename=bar.html", "foo.html, attachment"),
    // Firefox: parameters without a value are skipped. Chromium stops at them, and has no name.
    ("inline; attachment; filename=foo.html", "foo.html"),
    ("attachment; inline; filename=foo.html", "foo.html"),

    // Quotation marks and backslashes.
    ("attachment; filename=\"the \\\"plans\\\".pdf\"", "the \"plans\".pdf"),
    ("attachment; filename=\"f\\oo.html\"", "foo.html"),
    ("attachment; filename=\"\\\\foo.html\"", "foo.html"),
    ("attachment; filename=\"\\foo.html\"", "foo.html"),
    ("attachment; filename=\"\\b\\a\\", "ba\\"),
    ("attachment; filename=\"unfinished.txt", "unfinished.txt"),
    ("attachment; filename=\"/etc/passwd\"", "etc/passwd"),
    ("attachment; filename=foo\"bar;baz\"qux", "foo\"bar;baz\"qux"),
    ("attachment; filename=5\".img; size=3", "5\".img"),
    // Firefox: the value ends with its string. Chromium appends the rest.
    ("attachment; filename=\"foo.html\".txt", "foo.html"),
    // Firefox. Chromium has no name.
    ("\"foo; filename=bar;baz\"; filename=qux", "qux"),
    // Browsers remove these backslashes, too. Windows servers send such paths, and their last component is the name.
    ("attachment; filename=\"C:\\dev\\robots.txt\"", "C:\\dev\\robots.txt"),
    ("attachment; filename=\"C:\\\\dev\\\\robots.txt\"", "C:\\dev\\robots.txt"),

    // Octets of UTF-8, octets of Latin-1 or Windows-1252, and text that the transport has already decoded.
    ("attachment; filename=\"caf\u{C3}\u{A9}.txt\"", "café.txt"),
    ("attachment; filename=caf\u{C3}\u{A9}.txt", "café.txt"),
    ("attachment; filename=\"caf\u{E9}.txt\"", "café.txt"),
    ("attachment; filename=caf\u{E9}.txt", "café.txt"),
    ("attachment; filename=\"a \u{96} b.txt\"", "a – b.txt"),
    ("attachment; filename=\"文件.txt\"", "文件.txt"),
    // Percent-encoding: Chromium decodes it; a percent sign that begins no escape of UTF-8 stays.
    ("attachment; filename=%E6%96%87.txt", "文.txt"),
    ("attachment; filename=\"%F0%90%8C%B0%F0%90%8C%B1abc.jpg\"", "𐌰𐌱abc.jpg"),
    ("attachment; filename=\"%EC%98%88 %EC%98%88.jpg\"", "예 예.jpg"),
    ("attachment; filename=\"abc%20de.pdf\"", "abc de.pdf"),
    ("attachment; filename=\"foo-%41.html\"", "foo-A.html"),
    ("attachment; filename=\"foo-%\\41.html\"", "foo-A.html"),
    ("attachment; filename=\"100%25.txt\"", "100%.txt"),
    ("attachment; filename=\"50%.txt\"", "50%.txt"),
    // Chromium has no name for these. The text says more than the URL's last part, which would be taken instead.
    ("attachment; filename=%B7%DD%BD%D1.png", "%B7%DD%BD%D1.png"),
    ("attachment; filename=%EC%98%88%EC%88%A", "%EC%98%88%EC%88%A"),

    // Encoded words, as Chromium decodes them.
    ("attachment; filename=\"=?UTF-8?B?5paH?= =?utf-8?q?_=2Etxt?=\"", "文 .txt"),
    ("attachment; filename=\"=?EUC-JP?Q?=B7=DD=BD=D13=2Epng?=\"", "芸術3.png"),
    ("attachment; filename=\"=?Shift_JIS?Q?=8C=7C=8F=70?=\"", "芸術"),
    ("attachment; filename==?eUc-Kr?b?v7m8+iAzLnBuZw==?=", "예술 3.png"),
    ("inline; filename=\"=?iso88591?Q?caf=E9_?= .png\"", "café .png"),
    ("inline; filename=\"my first =?utf-8?Q?caf=C3=A9?= .png\"", "my first café.png"),
    ("inline; filename=\"=?windows-1252?Q?caf=E9?=  =?iso-8859-7?b?4eI=?= .png\"", "caféαβ.png"),
    ("inline; filename=\"what=?.txt\"", "what=?.txt"),

    // Extended values.
    ("attachment; filename=\"fallback\"; filename*=UTF-8''na%C3%AFve.txt", "naïve.txt"),
    ("attachment; filename*=UTF-8''na%C3%AFve.txt; filename=\"fallback\"", "naïve.txt"),
    ("attachment; filename*=iso-8859-1'en'%A3.txt", "£.txt"),
    ("attachment; filename*=ISO-8859-1''%e2%82%ac", "â‚¬"),
    ("attachment; filename*=EUC-JP''%B7%DD%BD%D13%2Epng", "芸術3.png"),
    ("attachment; filename*=euc-jp''%8E%B1%A4%A2%A5%DF.txt", "ｱあミ.txt"),
    ("attachment; filename*=Euc-Kr'ko'%BF%B9%BC%FA%2Epng", "예술.png"),
    ("attachment; filename*= UTF-8''foo-%c3%a4.html", "foo-ä.html"),
    ("attachment; filename* =UTF-8''foo-%c3%a4.html", "foo-ä.html"),
    ("inline; filename*=iso88591''cafe foo.png", "cafe foo.png"),
    ("attachment; filename*=UTF-8''%2Ffoo.html", "foo.html"),
    ("attachment; filename*=nonsense''%FF.txt; filename=b.txt", "b.txt"),
    ("attachment; filename*=UTF-8''%FF.txt; filename=b.txt", "b.txt"),
    ("attachment; filename*=UTF-8''%4; filename=b.txt", "b.txt"),
    // Malformed ones: Firefox forgives them, Chromium takes `filename`. So they count if there is no `filename`.
    ("attachment; filename*=\"UTF-8''foo-%c3%a4.html\"", "foo-ä.html"),
    ("attachment; filename*=\"UTF-8''quoted.txt\"; filename=b.txt", "b.txt"),
    ("attachment; filename*=\"a%20b\"", "a b"),
    ("attachment; filename*=foo-%41.html", "foo-A.html"),
    ("attachment; filename*=''foo-%c3%a4.html", "foo-ä.html"),
    ("attachment; filename*=UTF-8'foo-%41.html", "foo-A.html"),
    ("attachment; filename*=UTF-8'foo-%41.html; filename=bar.html", "bar.html"),
    ("attachment; filename*=a''foo", "foo"),

    // Continuations, as Firefox reads them.
    ("attachment; filename*0=\"foo.\"; filename*1=\"html\"", "foo.html"),
    ("attachment; filename*1=\"bar\"; filename*0=\"foo\"", "foobar"),
    ("attachment; filename=basic; filename*0*=UTF-8''multi; filename*1=line; filename*2*=%20%C3%A9", "multiline é"),
    ("attachment; filename*0*=UTF-8''%C3; filename*1*=%A9.txt", "é.txt"),
    ("attachment; filename*0*=EUC-JP''%B7%DD; filename*1*=%BD%D1", "芸術"),
    (
      "attachment; filename*0=a; filename*1=1; filename*2=2; filename*3=3; filename*4=4; filename*5=5; filename*6=6; "
        + "filename*7=7; filename*8=8; filename*9=9; filename*10=b", "a123456789b"
    ),
    ("attachment; filename*0=foo; filename*2=bar", "foo"),
    ("attachment; filename*0=foo; filename*01=bar", "foo"),
    ("attachment; filename*0=foo; filename*1a=bar; filename*-1=bar; filename*11111111111111111111=bar", "foo"),
    ("attachment; filename*0=first; filename*1=second; filename*0=wrong; filename*2=bad", "firstsecond"),
    ("attachment; filename=basic; filename*1=multi; filename*2=line", "basic"),
    ("attachment; filename*=UTF-8''extended; filename*0=foo; filename*1=bar", "extended"),
    ("attachment; filename*0*=UTF-8''A%e4B; filename=fallback", "fallback"),
    ("attachment; filename=basic; filename*0=\"foo\"; filename*1=\"\\b\\a\\r.html\"", "foobar.html"),
    ("attachment; filename*0=UTF-8''plain; filename*1*=%20UTF-8''%20end", "UTF-8''plain UTF-8'' end"),
  ]
}
