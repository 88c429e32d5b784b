/** The chart's README: how to install, and a row for each value. */
import type { Setting } from '../settings/settings.ts'
import { valuesTable } from './values-files.ts'

export function chartReadme(settings: readonly Setting[]): string {
  return `<!-- Written by manifests/generate; change the generator, not this file. -->

# Gatehouse

One guarded entrance to all of a team's MCP servers.

\`\`\`sh
helm install gatehouse <this folder> --namespace gatehouse-system --create-namespace
\`\`\`

One installation per cluster: the definitions, the controllers and the webhook are cluster-wide. \`docs/install.md\` of the
repository says more.

## Values

A misspelt value is refused, and so is one that is given by half.

${valuesTable(settings)}
`
}
