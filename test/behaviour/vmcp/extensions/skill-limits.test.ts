/** Skills that are costly to read, and clients that send many or long addresses. */
import t from 'tap'
import { atOnce } from '../../../../runtime/mcp/index.ts'
import { SkillAddresses } from '../../../../runtime/vmcp/catalog/names/skill-addresses.ts'
import { shownChildren } from '../../../../runtime/vmcp/features/skills/directories.ts'
import { readSkill } from '../../../../runtime/vmcp/features/skills/entry.ts'
import { SkillListings } from '../../../../runtime/vmcp/features/skills/listing.ts'
import { eras } from './clock-servers.ts'
import {
  clientOf,
  entry,
  type Files,
  manifestText,
  skillsOf,
  startSkills,
  startSkillServer,
} from './skill-servers.ts'

const files: Files = { 'SKILL.md': manifestText('audit') }
const root = 'skill://audit'

await t.test('skills: an entry that is costly to check hides only itself', async (t) => {
  const many = Array.from({ length: 400_000 }, () => 1)
  const frontmatter = { name: 'huge', description: 'x', many }
  const alpha = await startSkillServer(t, {
    name: 'alpha',
    skills: [entry('skill://huge', files, { frontmatter }), entry(root, files)],
  })
  const vmcp = await startSkills(t, { alpha })
  for (const era of eras) {
    const skills = await skillsOf(await clientOf(era, vmcp.url))
    t.same(
      skills.map(({ uri }) => uri),
      [`${root}/SKILL.md`],
    )
  }
  t.match(await vmcp.event('skill_refused'), { reason: /the frontmatter has more than 65536 bytes/ })
})

await t.test('skills: entries within the limits are read in short steps', (t) => {
  const read = (change: object) => {
    const json = Buffer.from(JSON.stringify({ ...entry(root, files), ...change }))
    return atOnce(readSkill(json, { backend: 'alpha', refuse: [], addressOf: (uri) => uri }))
  }
  const digest = `sha256:${'0'.repeat(64)}`
  const file = (uri: string) => ({ uri, digest, size: 1 })
  const frontmatter = { name: 'audit', description: 'x' }
  const list = Array.from({ length: 30_000 }, () => 1)
  t.match(read({ frontmatter: { ...frontmatter, list } }), { name: 'audit' })
  t.match(read({ frontmatter: { ...frontmatter, list: [...list, 'a\u200b'] } }), {
    reason: /hidden characters/,
  })
  const deep = (count: number) => `${root}/${'a/'.repeat(count)}x`
  t.match(read({ resources: [file(`${root}/SKILL.md`), file(deep(62))] }), { name: 'audit' })
  t.match(read({ resources: [file(`${root}/SKILL.md`), file(deep(63))] }), { reason: /inside the directory/ })
  t.end()
})

await t.test('skills: a frontmatter with a duplicate member is refused', (t) => {
  const text = JSON.stringify(entry(root, files)).replace(
    '"name":"audit"',
    '"name":"audit","x":{"a":"b","a":"c"}',
  )
  const skill = atOnce(
    readSkill(Buffer.from(text), { backend: 'alpha', refuse: [], addressOf: (uri) => uri }),
  )
  t.match(skill, { reason: 'the entry is not valid JSON' })
  t.end()
})

await t.test('skills: the children of a directory are read in many steps, up to a limit', (t) => {
  const listOf = (count: number) =>
    Buffer.from(
      JSON.stringify(Array.from({ length: count }, (_, i) => ({ uri: `${root}/${i}`, name: `${i}` }))),
    )
  const work = shownChildren(listOf(10_000), root, (uri) => uri)
  let steps = 1
  let step = work.next()
  for (; !step.done; step = work.next()) steps++
  t.equal(step.value.length, 10_000)
  t.ok(steps > 90, `${steps} steps`)
  t.throws(() => atOnce(shownChildren(listOf(10_001), root, (uri) => uri)), { message: /too many elements/ })
  t.end()
})

await t.test('skills: an update without a path keeps its address', (t) => {
  const listings = new SkillListings(new SkillAddresses(new Set(['alpha', 'beta']), undefined))
  for (const [uri, expected] of [
    ['skill://', 'skill://'],
    ['skill://a', 'skill://alpha/a'],
    ['file:///a', 'file:///a'],
  ]) {
    const shown = listings.updateOf('alpha', Buffer.from(JSON.stringify({ uri })))
    t.same(JSON.parse(shown.toString()), { uri: expected })
  }
  t.end()
})
