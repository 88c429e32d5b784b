/** Directories of skills, from the skill's entry or from the backend, in both client and backend eras. */
import t from 'tap'
import { eras, type Fields, resultOf } from './clock-servers.ts'
import { clientOf, entry, refundFiles, startSkills, startSkillServer } from './skill-servers.ts'

const directory = 'inode/directory'

for (const clientEra of eras)
  for (const backendEra of eras)
    await t.test(`skills: directories (${clientEra} client, ${backendEra} backend)`, async (t) => {
      const alpha = await startSkillServer(t, { name: 'alpha', era: backendEra })
      const beta = await startSkillServer(t, {
        name: 'beta',
        era: backendEra,
        skills: [entry('skill://refunds', refundFiles), entry('skill://live', {}, { resources: 'dynamic' })],
        directories: {
          'skill://refunds': [{ uri: 'skill://refunds/SKILL.md', name: 'SKILL.md', size: 5 }],
          'skill://live': [
            { uri: 'skill://live/notes', name: 'notes', mimeType: directory },
            { uri: 'skill://alpha/refunds', name: 'foreign', mimeType: directory },
            { uri: 'skill://live/notes/deep.md', name: 'deep.md' },
            { uri: 'skill://live/..', name: 'above', mimeType: directory },
          ],
        },
      })
      const vmcp = await startSkills(t, { alpha, beta })
      const request = await clientOf(clientEra, vmcp.url)
      const read = async (uri: string) =>
        (await resultOf(request, 'resources/directory/read', { uri }))['resources'] as Fields[]
      t.same(await read('skill://alpha/refunds'), [
        {
          uri: 'skill://alpha/refunds/SKILL.md',
          name: 'SKILL.md',
          mimeType: 'text/markdown',
          size: Buffer.byteLength(refundFiles['SKILL.md'] ?? ''),
        },
        { uri: 'skill://alpha/refunds/templates', name: 'templates', mimeType: directory },
        { uri: 'skill://alpha/refunds/scripts', name: 'scripts', mimeType: directory },
      ])
      t.match(await read('skill://alpha/refunds/templates/eu'), [
        { uri: 'skill://alpha/refunds/templates/eu/mail.md' },
      ])
      t.same(await read('skill://beta/refunds'), [
        { uri: 'skill://beta/refunds/SKILL.md', name: 'SKILL.md', size: 5 },
      ])
      t.same(
        await read('skill://beta/live'),
        [{ uri: 'skill://beta/live/notes', name: 'notes', mimeType: directory }],
        'only direct children of the directory',
      )
      for (const uri of [
        'skill://alpha/refunds/SKILL.md',
        'skill://alpha/refunds/nothing',
        'skill://alpha/other',
        'skill://alpha/refunds/',
        'skill://gamma/refunds',
        'skill://beta/refunds/nothing',
      ])
        t.equal((await request('resources/directory/read', { uri }))?.error?.code, -32602, uri)
      t.match(
        (await request('resources/directory/read', { uri: 'skill://alpha/refunds', cursor: 'x' }))?.error,
        {
          code: -32602,
          message: 'invalid cursor',
        },
      )
    })

await t.test('skills: a dynamic skill has no directories if its backend does not list them', async (t) => {
  const alpha = await startSkillServer(t, {
    name: 'alpha',
    skills: [entry('skill://live', {}, { resources: 'dynamic' })],
  })
  const vmcp = await startSkills(t, { alpha })
  const request = await clientOf('session', vmcp.url)
  t.match((await request('resources/directory/read', { uri: 'skill://live' }))?.error, {
    code: -32602,
    message: /is not a directory of a skill/,
  })
})
