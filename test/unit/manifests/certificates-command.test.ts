/** The `certificates` commands check their flags before they send anything. */
import { Command } from 'commander'
import t from 'tap'
import { addCertificatesCommand } from '../../../hooks/certificates/command.ts'
import { kustomized } from '../../helpers/hooks/manifests.ts'
import { untyped } from '../../helpers/untyped.ts'

/** Parses without a cluster. Returns the error or the output. */
async function run(...args: readonly string[]): Promise<string> {
  let output = ''
  const take = (text: string) => {
    output += text
  }
  const program = new Command('gatehouse-hooks')
    .exitOverride()
    .configureOutput({ writeOut: take, writeErr: take })
  addCertificatesCommand(program)
  for (const group of program.commands) {
    for (const command of [group, ...group.commands]) {
      command.exitOverride().configureOutput({ writeOut: take, writeErr: take })
    }
  }
  try {
    await program.parseAsync(args, { from: 'user' })
    return output
  } catch (error) {
    return `${error instanceof Error ? error.message : ''}\n${output}`
  }
}

const where = ['--namespace', 'n', '--secret', 's', '--service', 'svc', '--kubeconfig', '/nonexistent']

await t.test('certificates: a missing flag is named, and the help lists the flags', async (t) => {
  t.match(await run('certificates', 'issue'), /required option '--\w+/)
  t.match(await run('certificates', 'publish', '--namespace', 'n'), "required option '--secret <name>'")
  t.match(await run('certificates', 'issue', '--help'), '--renew-before')
})

await t.test('certificates: durations and their relation are checked first', async (t) => {
  t.match(await run('certificates', 'issue', ...where, '--lifetime', '90d'), 'expected a duration')
  t.match(
    await run('certificates', 'issue', ...where, '--lifetime', '24h', '--renew-before', '24h'),
    '--renew-before must be shorter than --lifetime',
  )
})

await t.test('certificates: a missing cluster configuration is reported', async (t) => {
  t.match(await run('certificates', 'issue', ...where), 'the Kubernetes configuration cannot be read')
})

await t.test('certificates: the command accepts the flags of the manifests', async (t) => {
  for (const folder of ['', 'overlays/cert-manager']) {
    const job = kustomized(folder).find(({ kind }) => kind === 'Job')
    const args: string[] = untyped(job?.['spec']).template.spec.containers[0].args
    const told = await run(...args, '--kubeconfig', '/nonexistent')
    t.match(told, 'the Kubernetes configuration cannot be read', `${args[1]}: understood to the end`)
  }
})
