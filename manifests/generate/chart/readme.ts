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

That installs everything: definitions, hooks server, webhook, certificate, and a private Metacontroller. \`helm test gatehouse -n
gatehouse-system\` asks whether it answers; \`helm upgrade\` brings the definitions up to date; \`helm uninstall\` leaves them.

One installation per cluster: the definitions, the controllers and the webhook are cluster-wide. \`docs/install.md\` of the
repository says more.

## Values

A misspelt value is refused, and so is one that is given by half.

${valuesTable(settings)}
`
}
