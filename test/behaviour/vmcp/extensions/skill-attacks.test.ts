/** Hostile servers with skills: foreign files, changed content, other spellings, invalid entries, hidden characters. */
import t, { type Test } from 'tap'
import { eras, type Fields, resultOf } from './clock-servers.ts'
import {
  clientOf,
  contentsOf,
  entry,
  type Files,
  manifestText,
  refundFiles,
  skillsOf,
  startSkills,
  startSkillServer,
} from './skill-servers.ts'

const files: Files = { 'SKILL.md': manifestText('audit'), 'a.md': 'a\n' }
const root = 'skill://audit'

/** Starts a virtual server with two backends, one of which has a skill with this entry. */
async function startOne(t: Test, skill: Fields, skills: Record<string, unknown> = {}) {
  const alpha = await startSkillServer(t, {
    name: 'alpha',
    skills: [skill],
    contents: contentsOf(root, files),
  })
  const beta = await startSkillServer(t, { name: 'beta' })
  const vmcp = await startSkills(t, { alpha, beta }, {}, skills)
  return { alpha, beta, vmcp }
}

await t.test('skills: invalid and refused entries are not offered, and are reported', async (t) => {
  const good = entry(root, files)
  const [first, second] = good['resources'] as [Fields, Fields]
  const frontmatter = { name: 'audit', description: 'x' }
  const cases: readonly (readonly [string, Fields, RegExp, Record<string, unknown>?])[] = [
    [
      'a file of another backend',
      { resources: [first, { ...second, uri: 'skill://beta/refunds/a' }] },
      /inside the directory/,
    ],
    [
      'a file above the directory',
      { resources: [first, { ...second, uri: `${root}/../x` }] },
      /inside the directory/,
    ],
    [
      'an encoded separator',
      { resources: [first, { ...second, uri: `${root}/..%2fx` }] },
      /inside the directory/,
    ],
    ['a file that occurs twice', { resources: [first, first] }, /occurs twice/],
    ['no SKILL.md', { resources: [second] }, /must contain SKILL.md/],
    ['no digest', { resources: [{ ...first, digest: 'sha256:1' }] }, /a digest and a size/],
    ['a negative size', { resources: [{ ...first, size: -1 }] }, /a digest and a size/],
    [
      'too many bytes',
      { resources: [{ ...first, size: 16 * 1024 * 1024 + 1 }] },
      /larger than 16777216 bytes/,
    ],
    [
      'too many files',
      { resources: Array.from({ length: 513 }, (_, i) => ({ ...first, uri: `${root}/${i}` })) },
      /more than 512 files/,
    ],
    ['no resources', { resources: undefined }, /must be a list or "dynamic"/],
    ['another name', { frontmatter: { ...frontmatter, name: 'other' } }, /same name as the skill/],
    ['no description', { frontmatter: { name: 'audit' } }, /a name and a description/],
    [
      'hidden characters',
      { frontmatter: { ...frontmatter, description: 'x\u{e0041}' } },
      /hidden characters/,
    ],
    [
      'hidden characters in a key',
      { frontmatter: { ...frontmatter, meta: { 'a\u200b': 1 } } },
      /hidden characters/,
    ],
    ['a URI without SKILL.md', { uri: root }, /ends with \/SKILL.md/],
    ['a query', { uri: `${root}/SKILL.md?/SKILL.md` }, /plain URI/],
    [
      'a dynamic skill',
      { resources: 'dynamic' },
      /dynamic, which the configuration refuses/,
      { refuse: ['dynamic'] },
    ],
    [
      'allowed tools',
      { frontmatter: { ...frontmatter, 'allowed-tools': 'Bash' } },
      /permission to use tools/,
      { refuse: ['allowedTools'] },
    ],
  ]
  for (const [what, change, reason, settings] of cases) {
    const { vmcp } = await startOne(t, { ...good, ...change }, settings)
    for (const era of eras) {
      const request = await clientOf(era, vmcp.url)
      t.same(
        (await skillsOf(request)).map(({ uri }) => uri),
        ['skill://beta/refunds/SKILL.md'],
        what,
      )
      t.ok((await request('skills/get', { uri: 'skill://alpha/audit/SKILL.md' }))?.error, what)
      t.ok((await request('resources/read', { uri: 'skill://alpha/audit/SKILL.md' }))?.error, what)
    }
    t.match(await vmcp.event('skill_refused'), { backend: 'alpha', reason }, what)
  }
})

await t.test('skills: without the setting, the same entries are offered', async (t) => {
  for (const change of [
    { resources: 'dynamic' },
    { frontmatter: { name: 'audit', description: 'x', 'allowed-tools': 'Bash' } },
  ]) {
    const { vmcp } = await startOne(t, entry(root, files, change))
    const request = await clientOf('session', vmcp.url)
    t.equal((await skillsOf(request)).length, 2)
    t.ok((await request('resources/read', { uri: 'skill://alpha/audit/SKILL.md' }))?.result)
  }
})

await t.test('skills: content that does not match its digest is refused', async (t) => {
  const { alpha, vmcp } = await startOne(t, entry(root, files))
  const uri = 'skill://alpha/audit/a.md'
  const blob = { uri: `${root}/a.md`, blob: Buffer.from('a\n').toString('base64') }
  for (const [what, content, isAllowed] of [
    ['the same text', { uri: `${root}/a.md`, text: 'a\n' }, true],
    ['the same bytes', blob, true],
    ['other text', { uri: `${root}/a.md`, text: 'b\n' }, false],
    ['longer text', { uri: `${root}/a.md`, text: 'a\n\n' }, false],
    ['text and other bytes', { ...blob, text: 'b\n' }, false],
    ['no content', { uri: `${root}/a.md` }, false],
  ] as const) {
    alpha.contents[`${root}/a.md`] = content
    for (const era of eras) {
      const response = await (await clientOf(era, vmcp.url))('resources/read', { uri })
      if (isAllowed) t.match(response?.result, { contents: [{ uri }] }, what)
      else t.match(response?.error, { message: /does not match the digest/ }, what)
    }
  }
})

await t.test('skills: a changed skill is readable as soon as its entry changes', async (t) => {
  const { alpha, vmcp } = await startOne(t, entry(root, files))
  const request = await clientOf('session', vmcp.url)
  await skillsOf(request)
  const changed = { ...files, 'a.md': 'changed\n', 'new.md': 'new\n' }
  Object.assign(alpha.contents, contentsOf(root, changed))
  t.match((await request('resources/read', { uri: 'skill://alpha/audit/new.md' }))?.error, {
    message: /digest/,
  })
  alpha.skills[0] = entry(root, changed)
  for (const [path, text] of Object.entries(changed)) {
    const { contents } = await resultOf(request, 'resources/read', { uri: `skill://alpha/audit/${path}` })
    t.match(contents, [{ text }])
  }
})

await t.test('skills: another spelling of a URI does not evade the checks', async (t) => {
  const { alpha, vmcp } = await startOne(t, entry(root, files))
  const policies = [
    'permit(principal, action == Action::"read_resource", resource);',
    'permit(principal, action == Action::"get_skill", resource) when { resource.backend == "beta" };',
  ]
  const authz = { type: 'cedar', policies, entitiesJson: '[]' }
  const guarded = await startSkills(t, { alpha, beta: alpha }, { incomingAuth: { type: 'anonymous', authz } })
  for (const spelling of [
    '%61udit/a.md',
    'x/../audit/a.md',
    './audit/a.md',
    '/audit/a.md',
    'audit/a.md?x',
    'AUDIT/a.md',
  ]) {
    alpha.contents[`skill://${spelling}`] = { uri: `skill://${spelling}`, text: 'a\n' }
    for (const server of [vmcp, guarded])
      for (const era of eras) {
        const request = await clientOf(era, server.url)
        const response = await request('resources/read', { uri: `skill://alpha/${spelling}` })
        t.match(response?.error, { message: /not found/i }, spelling)
      }
  }
})

await t.test('skills: a backend cannot serve or shadow the skills of another backend', async (t) => {
  const stolen = 'skill://beta/refunds/SKILL.md'
  const alpha = await startSkillServer(t, {
    name: 'alpha',
    skills: [entry('skill://beta/refunds', refundFiles)],
    contents: { ...contentsOf('skill://beta/refunds', { ...refundFiles, 'SKILL.md': 'stolen' }) },
    resources: [{ uri: stolen, name: 'stolen' }],
    templates: [
      { uriTemplate: 'skill://{+path}', name: 'all' },
      { uriTemplate: '{+any}', name: 'any' },
    ],
    results: { link: { content: [{ type: 'resource_link', uri: stolen, name: 'x' }] } },
  })
  const beta = await startSkillServer(t, { name: 'beta' })
  const vmcp = await startSkills(t, { alpha, beta })
  for (const era of eras) {
    const request = await clientOf(era, vmcp.url)
    t.same(
      (await skillsOf(request)).map(({ uri }) => uri),
      ['skill://alpha/beta/refunds/SKILL.md', stolen],
    )
    const { contents } = await resultOf(request, 'resources/read', { uri: stolen })
    t.match(contents, [{ uri: stolen, text: refundFiles['SKILL.md'] }], 'from beta')
    t.match((await resultOf(request, 'resources/list'))['resources'], [
      { uri: 'skill://alpha/beta/refunds/SKILL.md' },
    ])
    const called = await resultOf(request, 'tools/call', { name: 'link', arguments: {} })
    t.match(
      called['content'],
      [{ uri: 'skill://alpha/beta/refunds/SKILL.md' }],
      'a link stays in its backend',
    )
    t.match((await request('resources/read', { uri: 'skill://refunds/SKILL.md' }))?.error, {
      message: /not found/i,
    })
  }
  t.match(await vmcp.event('skill_names_equal'), { name: 'refunds' })
})

await t.test(
  'skills: a skill with another scheme keeps its files, and needs get_skill under its own URI too',
  async (t) => {
    const other = 'github://acme/refunds'
    const skill = { skills: [entry(other, refundFiles)], contents: contentsOf(other, refundFiles) }
    const alpha = await startSkillServer(t, {
      name: 'alpha',
      ...skill,
      resources: [{ uri: `${other}/SKILL.md`, name: 'refunds' }],
    })
    const beta = await startSkillServer(t, { name: 'beta', ...skill })
    for (const effect of ['permit', 'forbid']) {
      const policies = [
        'permit(principal, action == Action::"read_resource", resource);',
        `${effect}(principal, action == Action::"get_skill", resource);`,
      ]
      const authz = { type: 'cedar', policies, entitiesJson: '[]' }
      const vmcp = await startSkills(t, { alpha, beta }, { incomingAuth: { type: 'anonymous', authz } })
      const request = await clientOf('session', vmcp.url)
      const addresses = (await skillsOf(request)).map(({ uri }) => uri)
      const expected = ['alpha', 'beta'].map((name) => `skill://${name}/~github/acme/refunds/SKILL.md`)
      t.same(addresses, effect === 'permit' ? expected : [])
      for (const uri of [...expected, `${other}/SKILL.md`]) {
        const response = await request('resources/read', { uri })
        if (effect === 'permit')
          t.match(response?.result, { contents: [{ uri, text: refundFiles['SKILL.md'] }] })
        else t.match(response?.error, { message: 'skill denied by authorization policy' })
      }
    }
  },
)

await t.test(
  'skills: the files of a refused skill are unreadable, also if they are listed or have another scheme',
  async (t) => {
    for (const own of ['skill://audit', 'github://acme/audit'])
      for (const isListed of [true, false]) {
        const skill = entry(own, files, { resources: 'dynamic' })
        const alpha = await startSkillServer(t, {
          name: 'alpha',
          skills: isListed ? [skill] : [],
          unlisted: [skill],
          contents: contentsOf(own, files),
          resources: [{ uri: `${own}/a.md`, name: 'a' }],
        })
        const beta = await startSkillServer(t, { name: 'beta' })
        const vmcp = await startSkills(t, { alpha, beta }, {}, { refuse: ['dynamic'] })
        const addresses = own.startsWith('skill:')
          ? ['skill://alpha/audit/a.md']
          : ['skill://alpha/~github/acme/audit/a.md', ...(isListed ? [`${own}/a.md`] : [])]
        for (const era of eras)
          for (const uri of addresses) {
            const response = await (await clientOf(era, vmcp.url))('resources/read', { uri })
            t.match(response?.error, { message: /not found/i }, `${uri} ${isListed}`)
          }
      }
  },
)

await t.test('skills: a file is unreadable while the skills of its backend are unknown', async (t) => {
  const own = 'github://acme/audit'
  const alpha = await startSkillServer(t, {
    name: 'alpha',
    isBroken: true,
    contents: contentsOf(own, files),
    resources: [{ uri: `${own}/a.md`, name: 'a' }],
  })
  const beta = await startSkillServer(t, { name: 'beta' })
  const vmcp = await startSkills(t, { alpha, beta })
  for (const era of eras) {
    const response = await (await clientOf(era, vmcp.url))('resources/read', { uri: `${own}/a.md` })
    t.match(response?.error, { message: /the skills cannot be read/ })
  }
})

await t.test('skills: the address of a skill does not evade a policy on a resource', async (t) => {
  const secret = { uri: 'file:///secret', text: 'secret' }
  const policies = [
    'permit(principal, action, resource);',
    'forbid(principal, action, resource == Resource::"file:///secret");',
  ]
  const authz = { type: 'cedar', policies, entitiesJson: '[]' }
  for (const declares of [true, false]) {
    const alpha = await startSkillServer(t, {
      name: 'alpha',
      declares,
      contents: { 'file:///secret': secret },
      resources: [{ uri: 'file:///secret', name: 'secret' }],
    })
    const beta = await startSkillServer(t, { name: 'beta' })
    const vmcp = await startSkills(t, { alpha, beta }, { incomingAuth: { type: 'anonymous', authz } })
    for (const era of eras) {
      const request = await clientOf(era, vmcp.url)
      t.match((await request('resources/read', { uri: 'file:///secret' }))?.error, { message: /denied/ })
      for (const uri of ['skill://alpha/~file//secret', 'skill://alpha/~FILE//secret'])
        for (const method of ['resources/read', 'resources/subscribe'])
          t.ok((await request(method, { uri }))?.error, `${method} ${uri}`)
    }
    t.notOk(alpha.requests.some(({ params }) => String(params['uri']).endsWith('secret')))
  }
})

await t.test('skills: a long address is unknown without a request to the backend', async (t) => {
  const alpha = await startSkillServer(t, { name: 'alpha' })
  const beta = await startSkillServer(t, { name: 'beta' })
  const vmcp = await startSkills(t, { alpha, beta })
  for (const era of eras) {
    const uri = `skill://alpha/${'x'.repeat(2_048)}/SKILL.md`
    t.match((await (await clientOf(era, vmcp.url))('skills/get', { uri }))?.error, { code: -32602 })
  }
  t.notOk(alpha.requests.some(({ method }) => method === 'skills/get'))
})
