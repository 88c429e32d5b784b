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
  await t.test(`skills: the skills of two backends, below the names of the backends (${what})`, async (t) => {
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
      ['skill://alpha/refunds/SKILL.md', 'skill://beta/acme/audit/SKILL.md', 'skill://beta/refunds/SKILL.md'],
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
  })
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
