/**
 * Tests that were removed while the sources were restructured (since 26 November 2026), and the tests that prove their
 * behavior now. A reworded title is not a removed test. Add a row when you delete a test that another test proves.
 */
export interface Replacement {
  /** Removed titles, as they were in the file. */
  readonly removed: { readonly file: string; readonly titles: readonly string[] }
  /** Tests that prove the behavior now. Empty when the behavior itself was removed. */
  readonly by: readonly { readonly file: string; readonly title: string }[]
  /** Why no test proves the behavior, or how the replacement differs. */
  readonly note?: string
}

export const replaced: readonly Replacement[] = [
  {
    removed: {
      file: 'unit/pretenured-closures.test.ts',
      titles: [
        'the pattern finds what it is for, and nothing else',
        'no function is written into an assignment to a property',
      ],
    },
    by: [],
    note: 'A style rule for the sources, which was dropped.',
  },
  {
    removed: {
      file: 'unit/vocabulary.test.ts',
      titles: ['vocabulary: no retired word in sources and docs'],
    },
    by: [],
    note: 'A word list for the sources, which was dropped.',
  },
  {
    removed: {
      file: 'unit/manifests/bundle/compiled.test.ts',
      titles: [
        'compiled code: a server without a home takes it, whoever runs it',
        'compiled code: where the folder for temporary files is missing, shared memory serves',
        'compiled code: that of another version of Node is left alone',
        'compiled code: when the user forbids caching in Node, or names a folder, that holds',
      ],
    },
    by: [],
    note: 'The packages no longer contain compiled code.',
  },
  {
    removed: {
      file: 'unit/schemas/process/load.test.ts',
      titles: [
        'load: optimizing begins once there was work for it, and only once',
        'load: a process that a few requests disturb is not optimized',
        'load: memory is given back after five seconds of rest, once for the work before it',
        'load: a server that was busy keeps its compiled code until it has rested for ten minutes',
        'load: a server with a large heap is not held up, one under load neither',
        'load: collecting shrinks the young generation',
        'load: a process that was started without optimizing compilers gets them with its work',
        'load: what asks for optimized code gets it at once',
      ],
    },
    by: [],
    note: 'Servers no longer set V8 flags at run time or force garbage collections.',
  },
  {
    removed: {
      file: 'unit/manifests/chart.test.ts',
      titles: [
        'chart, ${title}: renders what the kustomization holds',
        'helm template, ${title}: agrees with our own rendering',
      ],
    },
    by: [
      {
        file: 'unit/manifests/chart.test.ts',
        title: 'chart, ${title}: renders the objects of the kustomization',
      },
    ],
    note: 'The chart is written by hand, so Helm renders it in the first test.',
  },
  {
    removed: {
      file: 'unit/oauth/registration.test.ts',
      titles: ['client document: redirect URIs required, secrets refused'],
    },
    by: [
      {
        file: 'behaviour/authserver/clients/cimd.test.ts',
        title: 'cimd: documents that break a rule make the client unknown',
      },
      {
        file: 'behaviour/authserver/clients/authentication-methods.test.ts',
        title: 'cimd: the page of a rejected document names the violated rule',
      },
    ],
  },
  {
    removed: {
      file: 'behaviour/authserver/clients/authentication-methods.test.ts',
      titles: [
        'cimd: a document that prefers private_key_jwt and allows none logs in as a public client',
        'cimd: a document that requires keys or a secret is rejected with the reason',
      ],
    },
    by: [
      {
        file: 'behaviour/authserver/clients/authentication-methods.test.ts',
        title: 'cimd: a document whose first supported method is none logs in as a public client',
      },
      {
        file: 'behaviour/authserver/clients/authentication-methods.test.ts',
        title: 'cimd: a document that requires a secret or unusable keys is rejected with the reason',
      },
      {
        file: 'behaviour/authserver/clients/document-keys.test.ts',
        title: 'openid-client completes a login with its key',
      },
    ],
    note: 'The server now accepts documents with keys.',
  },
  {
    removed: {
      file: 'behaviour/authserver/clients/offline-access.test.ts',
      titles: ['register: a client that registers to refresh may ask for offline_access'],
    },
    by: [
      {
        file: 'behaviour/authserver/clients/scopes.test.ts',
        title: 'register: a client that registers to refresh may ask for offline_access',
      },
    ],
  },
  {
    removed: {
      file: 'unit/unsteady.test.ts',
      titles: ['a line of the reporter: file and what passed in it'],
    },
    by: [{ file: 'unit/group.test.ts', title: 'group: files report their own counts, failures and skips' }],
    note: 'The runner writes its own result lines.',
  },
  {
    removed: {
      file: 'unit/vmcp-middleware/policies.test.ts',
      titles: ['authorize: without a gate everything passes'],
    },
    by: [
      {
        file: 'behaviour/policy/authorization.test.ts',
        title: 'none switches authorization off, and anonymous callers are checked like all callers',
      },
    ],
    note: 'The chain omits the link when no policy is configured.',
  },
  {
    removed: {
      file: 'unit/vmcp-middleware/policies.test.ts',
      titles: [
        'rateLimit: a call that is refused whatever its rate costs nothing',
        'order: a call is authorized before it is counted',
      ],
    },
    by: [
      {
        file: 'unit/vmcp-middleware/policies.test.ts',
        title: 'chain: denied calls and calls to unknown tools take no token of the rate limit',
      },
    ],
  },
  {
    removed: {
      file: 'unit/docs/doctor-guide.test.ts',
      titles: [
        'guide: every code with its expectation and fix',
        'guide: every provider with what is known of it',
      ],
    },
    by: [
      {
        file: 'unit/docs/doctor-guide.test.ts',
        title: 'reference: every code and every provider has a row',
      },
    ],
    note: 'The tables moved from the guide to the generated reference.',
  },
  {
    removed: {
      file: 'unit/schemas/fields/fields.test.ts',
      titles: [
        '${kind}: it has the fields of the tables, and what goes beyond them is optional',
        'every object with fields that the tables name is in a table',
      ],
    },
    by: [
      {
        file: 'unit/public-names.test.ts',
        title: 'public names: the code declares the names in the checked-in file',
      },
    ],
    note: 'The file contains every field of every kind, with its type and whether it is required.',
  },
  {
    removed: {
      file: 'unit/hooks/echo.test.ts',
      titles: [
        'echo: what was applied comes back, not what the API server made of it',
        'echo: under server-side apply the fields of Metacontroller are picked from the object',
        'echo: an object that tells nothing is named, which keeps it and changes nothing',
      ],
    },
    by: [
      {
        file: 'unit/hooks/last-applied.test.ts',
        title: 'lastAppliedOrName: returns the applied object, not the stored one',
      },
      {
        file: 'unit/hooks/last-applied.test.ts',
        title: "lastApplied: with server-side apply, returns only Metacontroller's fields of the object",
      },
      {
        file: 'unit/hooks/last-applied.test.ts',
        title:
          'lastAppliedOrName: returns only the name of an object without a readable applied configuration',
      },
    ],
  },
]
