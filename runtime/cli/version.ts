/** `gatehouse version` prints this build's version information and platform. */
import { type Command, Option } from 'commander'
import { print, printJson } from '../toolkit/terminal/output.ts'
import { version } from '../toolkit/terminal/self.ts'

export function addVersionCommand(program: Command): void {
  program
    .command('version')
    .summary('print the version, the platform and the protocol revisions')
    .description('Prints the versions of Gatehouse and Node, the platform, and the supported MCP revisions.')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .addHelpText('after', '\nExample:\n  gatehouse version -o json\n\nExit codes: 0 done, 2 invalid usage.')
    .action(async ({ output }: { readonly output: 'text' | 'json' }) => {
      const facts = await factsOf()
      if (output === 'json') return printJson(facts)
      print(
        `gatehouse ${facts.version}\nnode      ${facts.node}\nplatform  ${facts.platform}\n` +
          `mcp       ${facts.protocolVersions.join(', ')}`,
      )
    })
}

async function factsOf() {
  const { allVersions } = await import('../mcp/index.ts')
  return {
    version,
    node: process.versions.node,
    platform: `${process.platform}/${process.arch}`,
    protocolVersions: allVersions,
  }
}
