/** Skills through a virtual server: lists, entries, files and policies, in both client and backend eras. */
import t from 'tap'
import { eras, type Fields, resultOf } from './clock-servers.ts'
import {
  clientOf,
  contentsOf,
  entry,
  type Files,
  manifestText,
  refundFiles,
  skillsId,
  skillsOf,
  startSkills,
  startSkillServer,
} from './skill-servers.ts'

const pairs = eras.flatMap((client) => eras.map((backend) => [client, backend] as const))
const auditFiles: Files = { 'SKILL.md': manifestText('audit') }

for (const [clientEra, backendEra] of pairs) {
  const what = `${clientEra} client, ${backendEra} backends`
  await t.test(
    `skills: the skills of two backends appear below the names of the backends (${what})`,
    async (t) => {
      const alpha = await startSkillServer(t, { name: 'alpha', era: backendEra })
      const beta = await startSkillServer(t, {
        name: 'beta',
        era: backendEra,
        skills: [
          entry('skill://refunds', refundFiles),
          entry('skill://acme/audit', auditFiles, { extra: 12, _meta: { 'com.example/x': 1 } }),
        ],
        contents: {
          ...contentsOf('skill://refunds', refundFiles),
          ...contentsOf('skill://acme/audit', auditFiles),
        },
      })
      const vmcp = await startSkills(t, { alpha, beta })
      const request = await clientOf(clientEra, vmcp.url)
      const skills = await skillsOf(request)
      t.same(
        skills.map(({ uri }) => uri),
        [
          'skill://alpha/refunds/SKILL.md',
          'skill://beta/acme/audit/SKILL.md',
          'skill://beta/refunds/SKILL.md',
        ],
      )
      t.same(skills[1], {
        ...entry('skill://beta/acme/audit', auditFiles),
        extra: 12,
        _meta: { 'com.example/x': 1, 'dev.gatehouse/backend': 'beta' },
      })
      for (const name of ['alpha', 'beta']) {
        const root = `skill://${name}/refunds`
        const { skill } = await resultOf(request, 'skills/get', { uri: `${root}/SKILL.md` })
        t.same(skill, { ...entry(root, refundFiles), _meta: { 'dev.gatehouse/backend': name } })
        const { resources } = skill as { resources: { uri: string }[] }
        for (const { uri } of resources) {
          const { contents } = await resultOf(request, 'resources/read', { uri })
          t.same(contents, [contentsOf(root, refundFiles)[uri]])
        }
      }
      t.ok(
        alpha.requests.every(({ params }) => !JSON.stringify(params).includes('skill://alpha')),
        'backends receive their own URIs',
      )
      for (const uri of [
        'skill://refunds/SKILL.md',
        'skill://gamma/refunds/SKILL.md',
        'skill://alpha/nothing/SKILL.md',
      ]) {
        t.match(
          (await request('skills/get', { uri }))?.error,
          { code: -32602, message: /no skill is served at/ },
          uri,
        )
        t.match((await request('resources/read', { uri }))?.error, { message: /not found/i }, uri)
      }
    },
  )
}

await t.test('skills: off by default, and advertised with directoryRead when enabled', async (t) => {
  const alpha = await startSkillServer(t, { name: 'alpha' })
  for (const [enabled, expected] of [
    [false, undefined],
    [true, { directoryRead: true }],
  ] as const) {
    const vmcp = await startSkills(t, { alpha }, {}, { enabled })
    for (const era of eras) {
      const request = await clientOf(era, vmcp.url)
      if (era === 'stateless') {
        const discovered = await resultOf(request, 'server/discover')
        const { extensions } = discovered['capabilities'] as { extensions: Fields }
        t.same(extensions[skillsId], expected)
      }
      const list = await request('skills/list')
      if (enabled) t.ok(list?.result)
      else t.equal(list?.error?.code, -32601)
    }
  }
})

await t.test('skills: a single backend keeps its URIs', async (t) => {
  const alpha = await startSkillServer(t, { name: 'alpha' })
  const vmcp = await startSkills(t, { alpha })
  for (const era of eras) {
    const request = await clientOf(era, vmcp.url)
    t.match(await skillsOf(request), [{ uri: 'skill://refunds/SKILL.md' }])
    t.ok((await request('skills/get', { uri: 'skill://refunds/SKILL.md' }))?.result)
    t.ok((await request('resources/read', { uri: 'skill://refunds/templates/mail.md' }))?.result)
  }
})

await t.test(
  'skills: a policy decides on each skill, in lists, entries, files and directories',
  async (t) => {
    const policies = [
      'permit(principal, action == Action::"read_resource", resource);',
      'permit(principal, action == Action::"get_skill", resource) when { resource.backend == "beta" };',
      'permit(principal, action == Action::"get_skill", resource == Skill::"skill://alpha/open/SKILL.md");',
      'forbid(principal, action == Action::"get_skill", resource in BackendSkill::"beta/skill://audit/SKILL.md");',
    ]
    const files = { alpha: ['refunds', 'open'], beta: ['refunds', 'audit'] }
    const servers = Object.fromEntries(
      await Promise.all(
        Object.entries(files).map(async ([name, roots]) => {
          const own = roots.map((root) => `skill://${root}`)
          const server = await startSkillServer(t, {
            name,
            skills: own.map((root) => entry(root, auditFiles)),
            contents: Object.assign({}, ...own.map((root) => contentsOf(root, auditFiles))) as Record<
              string,
              Fields
            >,
          })
          return [name, server] as const
        }),
      ),
    )
    const authz = { type: 'cedar', policies, entitiesJson: '[]' }
    const vmcp = await startSkills(t, servers, { incomingAuth: { type: 'anonymous', authz } })
    for (const era of eras) {
      const request = await clientOf(era, vmcp.url)
      t.same(
        (await skillsOf(request)).map(({ uri }) => uri),
        ['skill://alpha/open/SKILL.md', 'skill://beta/refunds/SKILL.md'],
      )
      for (const [root, isAllowed] of [
        ['skill://alpha/open', true],
        ['skill://alpha/refunds', false],
        ['skill://beta/refunds', true],
        ['skill://beta/audit', false],
      ] as const)
        for (const [method, uri] of [
          ['skills/get', `${root}/SKILL.md`],
          ['resources/read', `${root}/SKILL.md`],
          ['resources/directory/read', root],
        ] as const) {
          const response = await request(method, { uri })
          if (isAllowed) t.ok(response?.result, `${method} ${uri}`)
          else
            t.match(response?.error, { message: 'skill denied by authorization policy' }, `${method} ${uri}`)
        }
    }
    t.ok(vmcp.events.some(({ type }) => type === 'call_denied'))
  },
)

await t.test('skills: a policy on get_skill protects skills that no list contains', async (t) => {
  const root = 'skill://hidden/refunds'
  const alpha = await startSkillServer(t, {
    name: 'alpha',
    skills: [],
    unlisted: [entry(root, refundFiles)],
    contents: contentsOf(root, refundFiles),
  })
  const beta = await startSkillServer(t, { name: 'beta' })
  for (const [effect, isAllowed] of [
    ['permit', true],
    ['forbid', false],
  ] as const) {
    const policies = [
      'permit(principal, action == Action::"read_resource", resource);',
      `${effect}(principal, action == Action::"get_skill", resource);`,
    ]
    const authz = { type: 'cedar', policies, entitiesJson: '[]' }
    const vmcp = await startSkills(t, { alpha, beta }, { incomingAuth: { type: 'anonymous', authz } })
    for (const era of eras) {
      const request = await clientOf(era, vmcp.url)
      const read = await request('resources/read', {
        uri: 'skill://alpha/hidden/refunds/templates/eu/mail.md',
      })
      if (isAllowed) t.match(read?.result, { contents: [{ text: refundFiles['templates/eu/mail.md'] }] })
      else t.match(read?.error, { message: 'skill denied by authorization policy' })
      const got = await request('skills/get', { uri: 'skill://alpha/hidden/refunds/SKILL.md' })
      t.equal(got?.result !== undefined, isAllowed)
    }
  }
})

await t.test('skills: pages of the aggregated list, and the shortest lifetime', async (t) => {
  const many = Array.from({ length: 130 }, (_, index) => entry(`skill://s${index + 100}`, auditFiles))
  const alpha = await startSkillServer(t, { name: 'alpha', skills: many, pageSize: 50, ttlMs: 30_000 })
  const beta = await startSkillServer(t, { name: 'beta', ttlMs: 5_000 })
  const vmcp = await startSkills(t, { alpha, beta })
  for (const era of eras) {
    const request = await clientOf(era, vmcp.url)
    const first = await resultOf(request, 'skills/list')
    const second = await resultOf(request, 'skills/list', { cursor: first['nextCursor'] })
    const all = [...(first['skills'] as Fields[]), ...(second['skills'] as Fields[])].map(({ uri }) => uri)
    t.equal(all.length, 131)
    t.equal(new Set(all).size, 131)
    t.equal(second['nextCursor'], undefined)
    if (era === 'stateless') t.match(first, { ttlMs: 5_000, cacheScope: 'private' })
    t.match((await request('skills/list', { cursor: 'x' }))?.error, {
      code: -32602,
      message: 'invalid cursor',
    })
    t.match((await request('skills/list', { cursor: 5 }))?.error, { code: -32602 })
  }
  const lists = alpha.requests.filter(({ method }) => method === 'skills/list')
  t.equal(lists.length, 3, 'the list is cached for its lifetime')
})

await t.test('skills: one failed backend hides only its own skills, or fails the list', async (t) => {
  const alpha = await startSkillServer(t, { name: 'alpha' })
  const beta = await startSkillServer(t, { name: 'beta', isBroken: true })
  for (const mode of ['best_effort', 'fail']) {
    const operational = { failureHandling: { partialFailureMode: mode } }
    const vmcp = await startSkills(t, { alpha, beta }, { operational })
    for (const era of eras) {
      const response = await (await clientOf(era, vmcp.url))('skills/list')
      if (mode === 'fail')
        t.match(response?.error, { message: /backend beta is temporarily unavailable for skills\/list/ })
      else t.match(response?.result, { skills: [{ uri: 'skill://alpha/refunds/SKILL.md' }] })
    }
    t.ok(vmcp.events.some(({ type }) => type === 'skills_unread'))
  }
})
