"""Tells orders from questions, conditions, negations, memories, and from what is taken back or put off."""

import re

from app.calendar.grammar import WEEKDAYS
from app.search.phrases import Literal, Template
from app.search.words import WORDS, spans
from app.text import fold

_NEGATIONS = frozenset(["no", "nao", "nunca", "jamas", "never", "dont", "do", "don", "you", "i", "ya", "ja"])
_NEGATES = re.compile(
    r"\W*(?:(?:please|por favor|oye|oi|hey),? )?(?:no|n[aã]o|nunca|jam[aá]s|never|don['’]?t|do not"
    r"|you (?:don['’]?t|do not)|i (?:don['’]?t|do not) want you)\b",
    re.IGNORECASE,
)
# With their accents: "borre" is an order, "borré" tells what was done. So do "cancelaron" and "canceló".
_RECOUNTS = re.compile(
    r"\W*(?:(?:ya|ayer|hoy|j[aá]|ontem|hoje|yesterday|[eé]l|ell[ao]s?|el[ea]s?|yo|eu|t[uú]|vos|voc[eê]|vc"
    r"|[mtsl]e|l[oa]s?),? )*"
    r"(?:borré|cancelé|quité|vacié|anoté|apunté|guardé"
    r"|agregué|añadí|eliminé|saqué|recordé|recuerdo|me acuerdo|apaguei|cancelei|tirei|limpei|anotei|guardei"
    r"|(?!falt|estou)\w{2,}(?:aron|ieron|aram|eram|iram|ou|ó|aste|iste)"
    r"|adicionei|coloquei|deletei|lembrei|(?:me )?(?:lembro|esqueci|olvidé)|acabei"
    r"|faltan?m? (?:muy |bem |s[oó] )?(?:poc[oa]s?|pouc[oa]s?|much[oa]s?|muit[oa]s?)"
    r"|you (?:just |already |never )?(?:\w{2,}ed|told|said|put|wrote|forgot|did)"
    r"|i (?:just )?(?:deleted|cancell?ed|removed|noted|added|cleared|wrote|remember(?:ed)?)"
    r"|(?:te )?(?:remember|recuerdas|acordas|acuerdas|lembra)s? (?:de )?(?:when|how|that time"
    r"|the (?:time|day)|cuando|quando|aquel\w*|daquel\w*)"
    r"|(?:they|he|she|we|some(?:one|body)|(?:my|the) \w+) (?:have |has |had |just |already )?\w{2,}ed"
    r"|i ?['’]?(?:ll| will|m (?:gonna|going to)) (?:buy|get|grab|pick|take|go)|(?:voy|vamos) a comprar"
    r"|vou comprar"
    r"|i (?:would|could|should|might|wish|was)|(?!pod|gust|gost)\w{2,}[aei]r[ií]a(?:mos)?)\b",
    re.IGNORECASE,
)
# The patterns below are for folded text.
_DAY = "|".join(WEEKDAYS)
# "take off the milk, no wait, leave it", "on Friday, no, Saturday", "or rather at 10"
_FILLERS = r"(?:(?:ah|ay|ai|oh|o|ou|bueno|bom|ups|ops|eh|h?mm+|ja+|ha+|k+|en realidad|na verdade),? )*"
_SECOND_THOUGHT = re.compile(
    rf"(?:[,;…!?-]|\.\.)\s*{_FILLERS}(?:no|nao|nop|na+)\b(?! (?:(?:me |te |se )?(?:olvid|esque)|forget|falt))"
    rf"|[,.;…!?-]\s*{_FILLERS}(?:actually|sorry|on second thoughts?|make (?:it|that)|mejor|melhor|perdona?"
    r"|desculpa|digo|alias|i mean|wait|deja(?:lo|la)?|deixa|olvid(?:al[oa]|ate)|esquece|leave it"
    r"|forget (?:it|that)|don ?[’']?t)\b"
    r"|\b(?:no|nao) (?:mejor|melhor|mentira|pera|espera|wait|deja|deixa|para|leave)\b"
    r"|\b(?:mejor|melhor) (?:ya )?(?:no|nao)\b|\b(?:o|ou) (?:melhor|mejor dicho)\b"
    r"|\b(?:joda|broma|brincadeira|zoeira|mentira|chiste|kidding|joking|jk|scratch that|never ?mind|nvm"
    r"|wait no|deixa (?:pra|para) la|deixa quieto)\b"
    r"|\d(?: ?[ap]m)?,? (?:no|nao),? \d"
    rf"|\b(?:{_DAY}),? (?:no|nao),? (?:el |na |no )?(?:{_DAY})\b"
)
# "… or not, I think", "the note about, what was it"
_DOUBT = re.compile(
    r"\W(?:(?<!que )(?:no|nao)|nah|creo|acho|i think|i guess|not sure|idk|dunno|sei la|(?:nem|nao) sei"
    r"|no se|no me acuerdo|sera"
    r"|(?:what|cual|qual|which|como) (?:was|is|era|es|e)(?: it| el| la| o| a| isso| eso)?)"
    r"\W*$"
)
# "delete it when I say so", "tomorrow I'll tell you"
_PUT_OFF = re.compile(
    r"\b(?:te|le|depois|luego|later|i['’ ]?ll|i will) (?:(?:te|le) )?(?:digo|aviso|cuento|confirmo|hablo"
    r"|escribo|falo|conto|mando|escrevo|tell|let you|write|text)\b"
    r"|\b(?:cuando|quando|hasta que|ate que|ate|when|until|once|si|se|if) (?:yo |eu |i )?(?:te |le |lhe )?"
    r"(?:diga|digo|avise|aviso|pida|ordene|confirme|mande|disser|falar|avisar|pedir|mandar|say|tell|ask)\b"
)
# "delete everything but the milk", "every day except Sundays"
_LEAVES_OUT = re.compile(
    r"\b(?:tod[oa]s?|tudo|everything|all|lista|list|every|cada|daily)\b.* (?:menos|salvo|excepto|except"
    r"|exceto|but (?:not|the)|a nao ser|tirando|aparte de)\b"
)
# "no hace falta", but not "ya no hace falta", which takes something off a list
_NOT_NEEDED = re.compile(
    r"(?<!\bya )(?<!\bja )\b(?:nem|nao|no|ni) (?:precisa|hace falta|necesita[sn]?|es necesario|tienes que)\b"
)
# "forget my code? can you do that"
_ASKS_AFTERWARDS = re.compile(
    r"\?\s*(?:(?:can|could|would|will|do) (?:you|u)|puede[sn]?|podes|podrias?|sabes|se puede|pode|consegue"
    r"|da pra)\b"
)
_DENIAL = re.compile(r"\b(?:no|nao|not|never|nunca|jamas)\b|n['’]t\b")
_CONDITION = re.compile(
    r"\w (?:si|se(?! (?:cham|llam))|if|unless|cuando|quando|when|caso) \w|\w nao\s*(?:[,.;!]|$)|\?"
)
# "delete both": of how many, and of what; "add to the note that …": to which
_UNCLEAR = re.compile(
    r"^\W*(?:please |me |por favor )?(?:borr|quit|sac|elimin|apag|tir|delet|remov|tach|risc|cancel|eras"
    r"|cross|check|take|marc|exclu)\w*(?: off| out)? (?:both|amb[oa]s"
    r"|(?:l[oa]s|[oa]s|the|all) (?:dos|dois|duas|two|tres|three|cuatro|quatro|four|cinco|five))\b"
    r"|\bthe todo list\b|\bto (?:the|my|that) note(?: \d+)? that\b"
    r"|^\W*(?:add|put|agreg\w+|anad\w+|pon\w*|adicion\w+|acrescent\w+|coloc\w+) (?:(?:to|en|na|no|ao"
    r"|a(?= la | mi | minha )) (?:my |the |th[ai][ts] |la |mi |minha |ess?a |esta )?|(?:this|that|it) .*\b"
    r"|ness?t?a )(?:note|nota)\b"
    r"|\b(?:a la|al|ao|(?:acrescent|adicion|inclu)\w* a|en la|n[ao]) (?:nota|lembrete|recordatorio)"
    r"(?: \d+)? que\b"
    r"|\b(?:na|nessa|nesta|(?:a|en) (?:la|esa|esta)|(?:to|in|on) (?:the|that|this)) (?:nota|note)\W*$"
)
# words of an order that mean something else: "me llamo el jefe", "borra una palabra de la nota"
_MEANS_ELSE = re.compile(
    r"\bme llamo (?:el|la|los|las|mi|un|una|ayer|hoy|a)\b|\bmy name is (?:on|not|in|at|the)\b"
    r"|\b(?:y|e|and) (?:\w+ )?(?:vive|mora|lives) (?:en|em|in)\b"  # of somebody else
    r"|\bremind (?!(?:me|us|myself|again|to)\b)[a-z]+"
    r"|,\s*(?:e |y )?(?:me )?(?:avis\w+|lembr\w+|notify|remind)\b.* (?:antes|before)\b"
    r"|\b(?:lembr\w+|esque[cç]\w+|recuerd\w+|olvid\w+|forget|remember) (?:de |da |que |about )?"
    r"(?:mim|gente|(?<=remember )me|(?<=forget )me|te amo|te quiero|i love you|viver|vivir)\b"
    r"|^\W*i (?:\w+ )?(?:need|want|had|have|going|ought|forgot) (?:to )?(?:to )?(?:cancel|delete|remove)\b"
    r"|^\W*(?:tengo que|tuve que|debo|quiero|quisiera|necesito|preciso|precisava|tenho que|tive que|quero"
    r"|vou)"
    r" (?:cancelar|borrar|eliminar|apagar|desmarcar|deletar)\b"
    r"|\b(?:y|e|and)(?: then| luego| depois)?"
    r" (?:borr[ae]|elimin[ae]|vaci[ae]|apag[ae]|delete|remove|clear|erase)"
    r"(?:l[oa]s?|-?[oa]s?)?(?: (?:it|them|that|lo|la|ess?[ea]|isso|eso|ela|ele))?\W*$"
    r"|\b(?:recuerda|recorda|avisa)les? a\b"
    r"|\b(?:ele|ela|eles|elas|isso|isto|quem|eso|esto|ella|ellos|he|she|it|they) (?:me|nos)"
    r" (?:lembr|avis|acord|recuerd|record|despiert)"
    r"|^\W*(?:os?|meu|esse|este|aquele|mi|ese|my|that|this) (?:lembrete|recordatorio|reminder)s?\b"
    r"(?! (?:to|for)\b)"
    r"|^\W*(?:lembrete|recordatorio|reminder)\b.*"
    r"(?:\b(?:cancel\w+|pode|puedes?|sumi\w+|nenhum|ningun|errado|tocou)\b"
    r"|\beu nao\b|\byo no\b)"
    r"|^\W*(?:(?:ja|eu|ya|yo|i) )*(?:morei|morar|morava|vivi|vivir|vivia|lived)\b"
    r"|\b(?:\d+|dos|tres|duas|two|three) (?:vezes|veces|times)\W*$"
    r"|^\W*anota\w* (?:isso|eso|esto|that|it) (?:e|y|and|pra|para|for)\b"
    r"|^\W*anota\w* (?:(?:o|lo) que (?:eu|yo|te)|nao,|no,)"
    r"|(?<!me )\blembrar? (?:ao?|aos?|pr[ao]|o|a) \w+ (?:de|que) \w+r\b"
    r"|,\s*(?:fixa|grava|salva|guarda|anota) (?:isso|isto|eso|esto)\W*$"
    r"|,\s*(?:guard|anot|grab|apunt)[ae]l[oa]\W*$"
    r"|\bremind me (?:not|never)\b|\bve se (?:nao|no)\b"
    r"|\b(?:de la|da|from (?:the|my|that)) (?:nota|note)\b|\bera (?:para|pra|de) \w+r\b"
    r"|\b(?:lembr\w+-me|me lembr\w+) disso\b"
    r"|\b(?:lembr\w+|recuerd\w+|record\w+|remember) (?:de )?(?:por que|porque te|why)\b"
)
# "q me vas a recordar"
_ABOUT_US = re.compile(r"\b(?:vas|vai|ibas|acabas|acabou|tienes|tem) (?:a|de|que|q) \w+r\W*$")
# "forget it, I am not going"
_CALLS_OFF = re.compile(
    r"\W*(?:(?:no|nao|ay|ah),? )?(?:olvid(?:al[oa]|ate)|esquece(?: isso)?|forget (?:it|that))\s*[,.;…-]+ *\w"
)
_AGAIN = re.compile(r"\b(?:otra vez|de nuevo|again|outra vez|de novo)\b")
_POINTS_AWAY = re.compile(
    r"\b(?:alla|alli|ahi|over there|out there)\b|\bthere(?: right)?(?: now)?\W*$|\b(?:hora|horas|tempo"
    r"|sao) la\W*$"
)
# "remind me this evening", "remind me that I have to call": no fact follows
_TO_RING = re.compile(
    r"\b(?:(?:rec[ou]e?rd|ac[ou]e?rd)\w*(?:me|nos)|me lembr\w+|lembr\w+-me) (?:de )?(?:q(?:ue)?\b|"
    rf"est[ea] (?:noche|tarde|manana|semana|mes|ano|fin|finde|{_DAY})\b)"
)
_ALREADY = re.compile(r"\W*(?:ya|ja) ")
_UNDO = re.compile(
    r"\W*(?:(?:por favor|please|uy|ops|oops) )?(?:deshac\w*|deshaz\w*|desfaz\w*|desfac\w*|undo)"
    r"(?: (?:eso|esto|isso|isto|it|that|la instalacion|a instalacao|the install(?:ation)?))?\W*"
)
_WITHDRAWN = (
    _SECOND_THOUGHT,
    _DOUBT,
    _PUT_OFF,
    _LEAVES_OUT,
    _NOT_NEEDED,
    _ASKS_AFTERWARDS,
    _ABOUT_US,
    _MEANS_ELSE,
    _UNCLEAR,
)
# The patterns below are for parts of an order.
# What stands for other things, or for none: "everything I took off", "the one before that", "no wait".
_STANDS_FOR_OTHERS = re.compile(
    r"(?:everything|all|tod[oa]s?|tudo) (?:that|what|i|you|we|lo|la|los|las|que|o|a|isso|eso|esto)\b"
    r"|(?:the|el|la|los|las|o|a|os|as) (?:ones?|others?|de antes|anterior\w*|que|otr[oa]s?|outr[oa]s?)\b"
    r"|(?:lo|o) (?:que|q|mismo|mesmo)\b|(?:i|eu|yo|you|tu|voce|vc|si|se|if)\b|(?:no|nao|not|don ?[’']?t)\b"
    r"|it \w|(?:both|ambos|ambas|los dos|las dos|os dois|as duas)\b"
    r"|(?:that|this|es[ae]|ess[ae]|est[ae])\b|(?:a la|al) [^,]*:"
    r"|.+ (?:eso|isso|that|this|it)(?: down)?(?: for me)?$"
    r"|(?:ya|ja|already|minus|except|only|hmm|claro|obvio) "
)
# Words around a thing that are no part of it: "milk back", "café na lista", "de tarefas limpar".
_LEFT_OVER = re.compile(
    r"(?:al|ao|aos|del?|da|do|en|em|nas?|numa?|para|pra|con|com|to|on|in|at|from|for|down|back"
    r"|called|llamada|chamada|named"
    r"|up|out|off|away|me|us"
    r"|que|before|twice|again|we(?: ?['’]?re)?|a (?:la|el|los|las|mi|mis|tu|su))(?: |$)"
    r"|(?:una? |uma? |el |la |o |a |os |as |an? |the |my |mi )?(?:cita|eventos?|reuniao|reunion|consulta"
    r"|compromisso"
    r"|appointment|meeting|event|telefone?o?|phone|numero|number|email|correo)\b|.*[:(]|.* - |.*\d{5,}"
    r"|.* (?:en|a|na|no|to|in) (?:la|el|las|los|o|the)? ?(?:de|da|do|del|dos|das|primera|segunda|misma|mesma"
    r"|otra|outra|ultima|one)\b"
    r"|.*\b(?:lists?|list(?:inh|it)?as?|not[ae]s?|lembretes?|recordatorios?|reminders?|tasks?|tareas?"
    r"|tarefas?"
    r"|pendientes?|again|instead|vez|de (?:novo|nuevo|volta|vuelta)|(?:em|en|at) (?:casa|home)|one day"
    r"|(?:u[nm]|algun) dia)\b"
    r"|.* (?:back|mas|mais|more|dale|al|aos?|del?|d[ao]s?|en|em|n[ao]s?|para|pra|con|com|to|on|in|at|from"
    r"|nel[ae]s?|dele|dela|ahi|alli|there|dentro|the|my|ness[ae]|nest[ae]|es[ae]|est[ae]|that|this|m[ei]|mis|meus?|minhas?|el|l[ao]s?|os?|as"
    r"|una?|uma?)$|.*(?<!vitamina)(?<!vitamin) a$"
)
_NO_NAME = re.compile(
    r"(?:que|y|e|and|porque|because|before|we|i|antes|senao|viu|ne|hein) .*|(?:.* )?(?:viu|ne|hein)"
    r"|.* (?:que|senao|porque|because|antes|before|eu|yo) .*|.*\b(?:on|in|en|em|a|na|no) (?:the|la|el|o) .*"
    r"|.* to (?:the|my)"
    r"|(?:pra|para|for) (?:mim|mi|me|hoje|hoy|today)|rapid(?:inho|ito|o)|(?:por )?favor|porfa|please|ahora"
    r"|agora|now|urgente|(?:(?:l[ao]s?|el|[ao]s?|the) )?(?:dos|dois|duas|two|both)"
)
_NO_THING = re.compile(
    r"\b(?:aunque|pero|se bem que|but|although|ya no|no (?:la|lo|quiero|estoy)|nao (?:to|estou|quero)|if|si"
    r"|porque|because|to|digo|perdon|quise decir|quis dizer|i mean)\b"
)
# What stands for no plain thing where nobody says "list": a clause, a place, a time, somebody, everything.
_NOT_PLAIN = re.compile(
    r"\b(?:is|are|was|were|am|s|has|have|had|will|can|gets?|got|came|comes?|coming|went|goes|going|rang|left|said"
    r"|says|died|i|you|he|she|it|we|they|me|us|my|mis?|meus?|minhas?|sorry|wrong|perdon|desculpa|buy|compr\w+"
    r"|esta[no]?|estao|ta|es|son|sao|era|fue|foi|hay|hace|tem|tiene|vai|va|vino|veio|llamo|ya|ja|already"
    r"|in|into|on|at|to|en|em|n[ao]s?|al|aos?|everything|all|tod[oa]s?|tudo|more|another|mas|mais|otr[oa]s?"
    r"|outr[oa]s?)\b|\b\w{3,}(?<!se)ed$|\b\w{3,}ou$"
)
_NAME_WITH_ARTICLE = re.compile(r"\W*(?:a|o|la|el) [A-ZÁÉÍÓÚÂÊÔÃÕÑ]")
_MOST_WORDS = 5  # of a plain thing, its amount included
# A text that says where to put it, or repeats an order: "en pendientes: …", "… en esa nota", "vez los fideos"
_ELSEWHERE = re.compile(
    r"(?:vez\b|(?:tambien|tambem|also|de nuevo|de novo|otra vez|outra vez|again) )"
    r"|(?:al|ao|en|em|n[ao]|on|to|in|a la)(?: (?:el|la|the|my|mis?|minhas?|meus?))? "
    r"(?:listas?|listinha|list|nota|note|pendientes|pendencias|tareas|tarefas|tasks|lembretes?"
    r"|recordatorios?)\b"
    r"|.* (?:en (?:la|esa|esta|mi)|n(?:ess|est)?a|a (?:la|minha)|(?:to|on|in) (?:the|my|that)) "
    r"(?:lista|list|nota|note|tareas|tarefas|tasks)$"
    # or only points: "about that", "for later", "esse arquivo pra mim", "that I am …", "all that I said"
    r"|(?:about |from |of |de )?(?:it|es(?:o|to)|is[st]o|the following|lo siguiente|o seguinte"
    r"|(?:th(?:at|is|ese|ose)|es[ae]|est[ea]|ess[ea])(?: [a-z]+)?)"
    r"(?: (?:for (?:me|later)|pra mim|para mi|aqui))?$|for later$|(?:the )?message$|down$"
    r"|(?:note )?(?:que|por favor|porfa|please)\b|(?:this|that|isso|isto|esto|eso|down):"
    r"|(?:down )?that (?:i|we|you|he|she|they|it|my|our|the)\b|(?:(?:todo|tudo) )?(?:lo|o|what) que \w+"
    r"|(?:eu|yo|i) (?:disse|falei|dije|said)$|all (?:that )?i \w+$|what (?:i|you|we) \w+$"
    r"|(?:una?|uma?|el|[oa]|an?|the|es[ea]|ess[ea]|est[ea]|th[ai][ts]) "
    r"(?:archivo|arquivo|file|texto|convers[aeo]\w*)\b"
)
_HOLDS_QUESTION = re.compile(
    r"\b(?:qué|(?:cuant|quant)[oa]s?|cu[aá]l(?:es)?|quais|qual|what|which|who|whose|where|when|how|why|sabes?"
    r"|c[oó]mo|d[oó]nde|onde|quem|qui[eé]n|cu[aá]ndo|quando|cuánt[oa]s?|oq|o que|por que)\b",
    re.IGNORECASE,
)
# "I am allergic to nuts, remember it"
_ASKS_TO_REMEMBER = re.compile(
    r"\W(?:ac[ou]e?rdate|rec[ou]e?rdal[oa]|no (?:te |lo )?olvides|nao (?:se )?esquec\w*|remember (?:it|that)"
    r"|lembra disso)\W*$"
)
# "my name is Bob", and no more
_TELLS_NAME = re.compile(r"\b(?:llam[oa]|cham[oa]|nombre es|nome e|name is|called)\b")
_ENDS_IN_NAME = re.compile(
    r"(?:(?!(?:y|e|and|que|q|igual|como|no|nao|not|like)\b)[^\W\d][\w'’.-]*[ !.]*){1,3}"
)
_ALL = re.compile(r"\b(?:tod[oa]s?|tudo|all|everything)\b")
_REQUEST = re.compile(
    r"\b(?:(?:avisa|recuerda|recorda|acuerda|acorda)(?:me|nos)(?:l[oa]s?)?|me (?:lembr|avis)[ae]\w*"
    r"|lembre-me|remind me"
    r"|(?:y|e|and) (?:me )?(?:avisas|recuerdas|recordas|lembra|avisa)|(?:list|lista|listinha) (?:and|y|e) )\b"
    r"|\b(?:(?:que )?me (?:recuerdes?|avises?|recordes|lembres?)|(?:recordar|avisar)(?:me|te)"
    r"|que (?:me )?(?:borres|elimines|quites|canceles|anotes|agregues|apagues|cancele))\b"
    r"|^(?:me )?(?:borres|elimines|quites|canceles|anotes|agregues|apagues)\b"
    r"|\b(?:na|to the|on the|en la|a la) (?:minha |mi |my |\w+ )?(?:lista|list)\b"
    r"|\b(?:y|e|and) .*\b(?:to|on|in|en|a|na|no|al|ao) (?:the |la |el |o )?(?:\w+ )?(?:list|lista)\b"
)
_NOT_TO_FORGET = re.compile(
    r"\W*(?:(?:please|oye|por favor|pf)\W+)?(?:(?:do ?n ?['’]?t|do not) (?:let me )?forget"
    r"|(?:que )?no (?:te |se )?(?:me )?(?:olvid\w+|dejes olvidar)"
    r"|nao (?:se |me )?(?:esque[cç]\w+|deix\w+ esquecer)"
    r"|(?:lembra|recuerda|recorda|remember)(?: que| that)? (?:eu |yo |i )?(?:tem que|tenho que|tengo que"
    r"|hay que|have to"
    r"|need to)|remember (?!that|i\b|my\b|when))"
)
_ASKS = re.compile(
    r"(?:me )?(?:why|what|how|when|where|who|por que|porque te|como|quando|cuando|donde|onde|quien|quem|cual"
    r"|qual|cuanto|quanto|que hora)\b"
)
_NO_PLACE = re.compile(
    r"^\W*(?:la|el|las|los|the|o|a) (?!paz\b|habana|plata\b|vegas|angeles|serena|rioja|salvador|alto\b|cairo"
    r"|paso\b|romana|palmas|coruna|mochis|union\b|ceiba|hague|bronx)|\b(?:of|my|mi|mis|meu|minha|con|com"
    r"|with|por|pero|mas|but|next|this|so|too|very|muy|muito|un|una|um|uma"
    r"|than|from|where|donde|onde|under|on|in|half|one|since|desde|que|for|(?:\S+ ){5}"
    r"|an?|not|no|nao|lol|ja+|kk+|casa|fear|hoje|hoy|today|lind[ao]|bonit[ao]|pequen[ao]|longe|lejos"
    r"|hermos[ao]|fe[ao]|car[ao]|perigos[ao]|peligros[ao]|tranquil[ao]|nice|small|big|beautiful|boring)\b"
)


def is_undo(said: str) -> bool:
    """Tell whether a message asks to undo what was done last, and nothing else."""
    return _UNDO.fullmatch(fold(said)) is not None


def is_again(said: str) -> bool:
    """Tell whether it asks to repeat something; beside another order it is unclear what."""
    return _AGAIN.search(fold(said)) is not None


def is_withdrawn(said: str) -> bool:
    """Tell whether a message takes back or corrects what it says, doubts it, or puts it off.

    So it does where it leaves something out of a whole ("all but the milk"), says that something need not be
    done, or asks whether we can.
    """
    folded = fold(said)
    return any(pattern.search(folded) for pattern in _WITHDRAWN)


def calls_off(said: str) -> bool:
    """Tell whether a message begins by calling off what was said before, and goes on."""
    return _CALLS_OFF.match(fold(said)) is not None


def ends_in_no(said: str) -> bool:
    """Tell whether a message takes back at its end all that it says: "queso, mejor no"."""
    return re.search(r"\b(?:mejor|melhor) (?:no|nao)\W*$", fold(said)) is not None


def is_conditional(text: str) -> bool:
    """Tell whether a condition or a question stands within a message."""
    return _CONDITION.search(fold(text)) is not None


def opens_with_reversal(text: str) -> bool:
    """Tell whether a message begins with a negation, a doubt or a question about what was or would be."""
    found = [word.text for word in spans(text)[:4]]
    return any(word in WORDS["reversing"] for word in found) or "por que" in " ".join(found)


def is_no_order(text: str, template: Template, *, names_things: bool = False) -> bool:
    """Return True for a question, a condition, a negation or what was done or is remembered.

    A question word or a negation that opens the template itself does not count. `names_things`: the order
    takes no free text, so that a condition may stand anywhere: "put gloves there, if I have none".
    """
    if names_things and (is_conditional(text) or _denies(text, template)):
        return True
    if _RECOUNTS.match(text):
        return True
    begins = template.parts[0]
    if _ALREADY.match(fold(text)) and not (isinstance(begins, Literal) and begins.text in ("ya", "ja")):
        return True  # "ya borre la nota", without its accent
    if _NEGATES.match(text) and not (isinstance(begins, Literal) and begins.text in _NEGATIONS):
        return True
    if text.rstrip(" .!").endswith("?") or text.lstrip().startswith("¿"):
        return True
    passed_over = WORDS["courtesies"] - {"i"}
    first = next((word.text for word in spans(text) if word.text not in passed_over), "")
    return first in WORDS["asking"] and not (isinstance(begins, Literal) and begins.text == first)


def _denies(text: str, template: Template) -> bool:
    """Tell whether a negation stands in a message that its template lacks."""
    known = {part.text for part in template.parts if isinstance(part, Literal)}
    return not known & _NEGATIONS and bool(_DENIAL.search(fold(text)))


def names_no_thing(item: str) -> bool:
    """Tell whether an item of an order stands for other things or none, or holds words around it."""
    said = fold(item).strip(" .,;:!?")
    return bool(_STANDS_FOR_OTHERS.match(said) or _LEFT_OVER.match(said) or _NO_THING.search(said))


def is_plain_thing(item: str) -> bool:
    """Tell whether it can only be a thing for a list: a few words that are no clause, place or somebody."""
    said = fold(item).strip(" .,;:!?")
    is_short = len(spans(said)) <= _MOST_WORDS
    return is_short and not _NOT_PLAIN.search(said) and not _NAME_WITH_ARTICLE.match(item)


def is_no_name(text: str) -> bool:
    """Tell whether words in the place of a name are no name: "for me", "please"."""
    return _NO_NAME.fullmatch(fold(text)) is not None


def is_no_place(text: str) -> bool:
    return _NO_PLACE.search(fold(text)) is not None


def points_away(text: str) -> bool:
    """Tell whether it is about a place that was named before: "what time is it there"."""
    return _POINTS_AWAY.search(fold(text)) is not None


def counts_weeks(text: str) -> bool:
    """Tell whether a day is named by the weeks from another one: "a week on Tuesday", "Tuesday week"."""
    return re.search(r"\b(?:weeks?|fortnight) (?:on|from)\b|day week\b|\ben ocho\b", fold(text)) is not None


def means_all(text: str, template: Template) -> bool:
    """Tell whether a message is about all of something where its phrase is not."""
    return bool(_ALL.search(fold(text))) and not _ALL.search(fold(template.phrase))


def asks_to_ring(text: str) -> bool:
    """Tell whether it asks for a reminder, which has a time: "remind me this evening", "remind me that"."""
    return _TO_RING.search(fold(text)) is not None


def lives_elsewhere(text: str) -> bool:
    """Tell whether it says where somebody else lives, or where the person wants to live or will."""
    return (
        re.search(
            r"\b(?:viven?|moram?|lives|vivir\w*|mudar\w*|morar|moving|(?!i |now )[a-z]+ (?:live|move))\b",
            fold(text),
        )
        is not None
    )


def says_to_forget(text: str) -> bool:
    return re.match(r"\W*(?:olvid|esquec|forget)", fold(text)) is not None


def tells_of_the_past(text: str) -> bool:
    return re.search(r"\b(?:foi|fue|was|caiu|cayo)\b", fold(text)) is not None


def holds_request(text: str) -> bool:
    """Tell whether a text to be kept holds another order: "dentist at 4 and remind me at 3"."""
    return _REQUEST.search(fold(text)) is not None


def asks_to_be_reminded(text: str) -> bool:
    """Tell whether a message says not to forget something."""
    return _NOT_TO_FORGET.match(fold(text)) is not None


def asks(text: str) -> bool:
    """Tell whether a text begins with a question."""
    return _ASKS.match(fold(text)) is not None


def is_elsewhere(text: str) -> bool:
    """Tell whether a text to be kept says where it belongs, or repeats an order."""
    return _ELSEWHERE.match(fold(text).strip(" .,;:!?")) is not None


def holds_more(text: str) -> bool:
    """Tell whether a remark about oneself holds a question, or ends in an order to remember it."""
    named = list(_TELLS_NAME.finditer(folded := fold(text)))
    is_more = bool(named) and not _ENDS_IN_NAME.fullmatch(folded[named[-1].end() :].strip())
    return is_more or bool(_HOLDS_QUESTION.search(text) or _ASKS_TO_REMEMBER.search(folded))


def denies(text: str) -> bool:
    return _DENIAL.search(fold(text)) is not None
