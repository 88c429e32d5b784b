/** Skills in tool locks: a changed or new skill is neither listed nor readable. */
import t from 'tap'
import { runtimeToolLock, type ToolLockSpec } from '../../../../schemas/index.ts'
import { checkBackend, checkText } from '../../../../runtime/tools/lock/check.ts'
import { lockSpec, manifestText as lockText, offeredIn } from '../../../../runtime/tools/lock/manifest.ts'
import { surveyConfig, type LockTarget } from '../../../../runtime/tools/lock/targets.ts'
import { parseManifests } from '../../../../runtime/toolkit/manifests/read.ts'
import { silentLog } from '../../../../runtime/net/index.ts'
import { surveyBackends } from '../../../../runtime/vmcp/index.ts'
import { eras, type Fields } from './clock-servers.ts'
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

const auditFiles: Files = { 'SKILL.md': manifestText('audit') }

/** Lists a server as `gatehouse lock` does. */
async function listed(url: string) {
  const target: LockTarget = { kind: 'Backend', name: 'alpha', url, transport: 'streamable-http' }
  const { config } = surveyConfig([target], () => undefined, '')
  const [found] = await surveyBackends(config, { env: {}, version: '0', log: silentLog })
  if (!found?.listing) throw new Error('not listed', { cause: found?.error })
  return { target, listing: found.listing }
}

async function lockOf(url: string): Promise<ToolLockSpec> {
  const { target, listing } = await listed(url)
  return lockSpec(target, offeredIn(listing), undefined)
}

for (const backendEra of eras)
  await t.test(`skills: changed and new skills are refused by a lock (${backendEra} backend)`, async (t) => {
    const alpha = await startSkillServer(t, {
      name: 'alpha',
      era: backendEra,
      skills: [entry('skill://refunds', refundFiles), entry('skill://audit', auditFiles)],
      contents: { ...contentsOf('skill://refunds', refundFiles), ...contentsOf('skill://audit', auditFiles) },
    })
    const beta = await startSkillServer(t, { name: 'beta', skills: [] })
    const spec = await lockOf(alpha.url)
    t.same(
      spec.skills?.map(({ name }) => name),
      ['skill://audit/SKILL.md', 'skill://refunds/SKILL.md'],
    )
    const changed = { ...refundFiles, 'scripts/run.sh': 'rm -rf /\n' }
    alpha.skills[0] = entry('skill://refunds', changed)
    alpha.skills.push(
      entry('skill://fresh', auditFiles, { frontmatter: { name: 'fresh', description: 'x' } }),
    )
    Object.assign(
      alpha.contents,
      contentsOf('skill://refunds', changed),
      contentsOf('skill://fresh', auditFiles),
    )
    for (const [mode, offered] of [
      ['block', ['audit']],
      ['freeze', ['audit']],
      ['observe', ['audit', 'fresh', 'refunds']],
    ] as const) {
      const pinning = { onChanged: mode, onNew: mode === 'observe' ? 'observe' : 'block' }
      const toolLocks = [runtimeToolLock(spec, 'alpha', 'alpha-lock')]
      const vmcp = await startSkills(t, { alpha, beta }, { pinning, toolLocks })
      for (const era of eras) {
        const request = await clientOf(era, vmcp.url)
        t.same(
          (await skillsOf(request)).map(({ frontmatter }) => (frontmatter as Fields)['name']),
          offered,
          mode,
        )
        for (const name of ['audit', 'fresh', 'refunds'])
          for (const method of ['skills/get', 'resources/read']) {
            const response = await request(method, { uri: `skill://alpha/${name}/SKILL.md` })
            if ((offered as readonly string[]).includes(name))
              t.ok(response?.result, `${mode} ${method} ${name}`)
            else t.equal(response?.error?.code, 403, `${mode} ${method} ${name}`)
          }
      }
      if (mode === 'block')
        t.match(await vmcp.event('pin_refused'), { backend: 'alpha', item: /^skill:/, reason: /^tool_/ })
    }
  })

await t.test('skills: a lock without skills does not compare them', async (t) => {
  const alpha = await startSkillServer(t, { name: 'alpha' })
  const { skills: _, ...spec } = await lockOf(alpha.url)
  const pinning = { onChanged: 'block', onNew: 'block' }
  const vmcp = await startSkills(t, { alpha }, { pinning, toolLocks: [runtimeToolLock(spec, 'alpha')] })
  t.equal((await skillsOf(await clientOf('session', vmcp.url))).length, 1)
})

await t.test('lock: differences between skills are shown as text', async (t) => {
  const alpha = await startSkillServer(t, { name: 'alpha' })
  const spec = await lockOf(alpha.url)
  const compare = async () => {
    const { target, listing } = await listed(alpha.url)
    return checkText(await checkBackend(target, listing, [spec]))
  }
  t.match(await compare(), /in sync, 2 pinned/)
  alpha.skills[0] = {
    ...entry('skill://refunds', { ...refundFiles, 'scripts/run.sh': 'other\n' }),
    frontmatter: { name: 'refunds', description: 'Pays everything' },
  }
  alpha.skills.push(entry('skill://audit', auditFiles))
  const text = await compare()
  t.match(text, /1 changed, 1 new, 0 removed/)
  t.match(text, /skill skill:\/\/refunds\/SKILL.md changed: text, files/)
  t.match(text, /\+.*Pays everything/)
  t.match(text, /skill skill:\/\/audit\/SKILL.md new/)
  alpha.skills.length = 0
  t.match(await compare(), /0 changed, 0 new, 1 removed/)
})

await t.test(
  'skills: the lock of a backend without skills refuses skills that the backend adds',
  async (t) => {
    const alpha = await startSkillServer(t, { name: 'alpha', skills: [] })
    const beta = await startSkillServer(t, { name: 'beta', declares: false })
    const spec = await lockOf(alpha.url)
    t.same(spec.skills, [])
    t.equal((await lockOf(beta.url)).skills, undefined)
    const written = parseManifests('-', lockText((await listed(alpha.url)).target, spec))
    t.same((written[0]?.doc as { spec?: ToolLockSpec } | undefined)?.spec?.skills, [])
    alpha.skills.push(entry('skill://refunds', refundFiles))
    const pinning = { onChanged: 'block', onNew: 'block' }
    const vmcp = await startSkills(t, { alpha }, { pinning, toolLocks: [runtimeToolLock(spec, 'alpha')] })
    const request = await clientOf('session', vmcp.url)
    t.same(await skillsOf(request), [])
    t.equal((await request('resources/read', { uri: 'skill://refunds/SKILL.md' }))?.error?.code, 403)
  },
)

await t.test('lock: skills with invalid entries are reported', async (t) => {
  const frontmatter = { name: 'audit', description: 'x\u200b' }
  const skills = [entry('skill://refunds', refundFiles), entry('skill://audit', auditFiles, { frontmatter })]
  const alpha = await startSkillServer(t, { name: 'alpha', skills })
  const { listing } = await listed(alpha.url)
  t.equal(listing.skills?.length, 1)
  t.match(listing.violations.problems, [
    { message: 'skill skill://audit/SKILL.md from backend alpha is left out: its entry is invalid' },
  ])
})
