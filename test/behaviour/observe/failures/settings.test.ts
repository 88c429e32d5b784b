/** Causes each failure on a running server. Five views must report it alike. */
import t from 'tap'
import { settingFailures } from '../../../helpers/failures/settings.ts'
import { tellAlike } from '../../../helpers/failures/views.ts'

tellAlike(t, settingFailures)
