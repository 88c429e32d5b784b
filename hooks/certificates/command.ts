/**
 * The hooks program's `certificates` commands, which a Job runs at installation and a CronJob runs for rotation.
 *
 *   certificates issue    issues, distributes and rotates the hooks server's serving certificate
 *   certificates publish  distributes the authority of an externally managed certificate, such as cert-manager's
 *
 * Prints one line per step to standard output. Exits with code 1 if the run did not finish.
 */
import type { Command } from 'commander'
import { GatehouseError, parseDuration } from '../../schemas/index.ts'
import { connect } from './cluster.ts'
import { publishAuthority, rotateCertificate } from './rotate.ts'

interface TargetFlags {
  readonly namespace: string
  readonly secret: string
  readonly webhookConfiguration: readonly string[]
  readonly compositeController: readonly string[]
  readonly kubeconfig?: string
}

interface IssueFlags extends TargetFlags {
  readonly service: string
  readonly clusterDomain: string
  readonly dnsName: readonly string[]
  readonly lifetime: number
  readonly renewBefore: number
  readonly settle: number
  readonly force: boolean
}

/**
 * Adds the commands `certificates issue` and `certificates publish` to the hooks program. Calls `report` with each
 * progress line.
 */
export function addCertificatesCommand(program: Command, report: (line: string) => void = printLine): void {
  const certificates = program
    .command('certificates')
    .description('issue, distribute and rotate the serving certificate of the hooks server')

  withTargets(certificates.command('issue'))
    .description(
      'issue the certificate, update every client to trust it, and rotate it when due; safe to repeat',
    )
    .requiredOption('--service <name>', 'Service in front of the hooks server')
    .option('--cluster-domain <domain>', 'DNS domain of the cluster', 'cluster.local')
    .option('--dns-name <name...>', 'additional DNS names for the certificate', [])
    .option('--lifetime <duration>', 'lifetime of a certificate, such as 2160h', parseDuration, hours(2160))
    .option(
      '--renew-before <duration>',
      'rotate when less than this much of the lifetime remains',
      parseDuration,
      hours(720),
    )
    .option(
      '--settle <duration>',
      'time to wait between steps while clients and servers reload',
      parseDuration,
      hours(1),
    )
    .option('--force', 'rotate now, even if rotation is not due', false)
    .action(async (flags: IssueFlags) => {
      if (flags.renewBefore >= flags.lifetime) {
        throw new GatehouseError('INVALID_CONFIG', {
          detail: '--renew-before must be shorter than --lifetime',
        })
      }
      const names = serviceNames(flags)
      const { lifetime: lifetimeMs, renewBefore: renewBeforeMs, settle: settleMs, force } = flags
      await rotateCertificate(await connect(clusterOf(flags)), {
        names,
        lifetimeMs,
        renewBeforeMs,
        settleMs,
        force,
        now: () => new Date(),
        report,
      })
    })

  withTargets(certificates.command('publish'))
    .description("update every client to trust the Secret's ca.crt; safe to repeat")
    .action(async (flags: TargetFlags) => {
      await publishAuthority(await connect(clusterOf(flags)), { now: () => new Date(), report })
    })
}

function withTargets(command: Command): Command {
  return command
    .requiredOption('--namespace <name>', 'namespace of the Secret and the Service')
    .requiredOption('--secret <name>', 'Secret that holds the certificate; it must exist but may be empty')
    .option('--webhook-configuration <name...>', 'ValidatingWebhookConfigurations to keep up to date', [])
    .option('--composite-controller <name...>', 'CompositeControllers to keep up to date', [])
    .option(
      '--kubeconfig <file>',
      'kubeconfig file (default: the pod’s in-cluster configuration, then the usual locations)',
    )
}

function clusterOf(flags: TargetFlags) {
  return {
    namespace: flags.namespace,
    secret: flags.secret,
    webhookConfigurations: flags.webhookConfiguration,
    compositeControllers: flags.compositeController,
    kubeconfig: flags.kubeconfig,
  }
}

/** Lists the in-cluster DNS names of a Service, starting with the name that API servers use. */
export function serviceNames(flags: {
  readonly service: string
  readonly namespace: string
  readonly clusterDomain: string
  readonly dnsName: readonly string[]
}): readonly string[] {
  const inNamespace = `${flags.service}.${flags.namespace}`
  const own = [`${inNamespace}.svc`, `${inNamespace}.svc.${flags.clusterDomain}`, inNamespace, flags.service]
  return [...new Set([...own, ...flags.dnsName])]
}

function hours(count: number): number {
  return count * 3_600_000
}

function printLine(line: string): void {
  process.stdout.write(`${line}\n`)
}
