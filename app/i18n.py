"""The three languages: telling them apart in short messages, and our sentences in each of them."""

import gettext
import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import Literal

Language = Literal["en", "es", "pt"]

LANGUAGES: tuple[Language, ...] = ("en", "es", "pt")


def say(language: str, message: str, /, **values: object) -> str:
    """Return a sentence in a person's language, with its {values} filled in.

    `message` is the English sentence, a literal so that it can be collected into the catalogues; it is
    returned for another language and if there is no translation.
    """
    return _catalogue(language).gettext(message).format(**values)


def say_plural(language: str, singular: str, plural: str, n: int, /, **values: object) -> str:
    """Return the form of a sentence for `n` things; {n} is filled in too."""
    return _catalogue(language).ngettext(singular, plural, n).format(**{"n": n, **values})


def detect_language(text: str, usual: str = "") -> Language | None:
    """Return the language of a message; None if it cannot be told ("ok", "2+2", a name, an emoji).

    Another language than the person's `usual` one takes two words that are of no other, or a long one.
    """
    if asks := _TRANSLATES.match(text):
        return next(language for language in LANGUAGES if asks[language])
    if usual and set(re.findall(r"[^\W\d_]+", text.casefold())) <= _LOANS:
        return None
    scores = dict.fromkeys(LANGUAGES, 0)
    prose = _NOT_PROSE.sub(" ", unicodedata.normalize("NFC", text[:_LONGEST])).replace("’", "'")
    for found in _WORD.finditer(prose):
        _score_word(found[0], scores, is_name=found.start() > 0 and found[0][0].isupper())
    unnamed = _NAME.sub(" ", prose)
    for language, pattern in _PATTERNS:
        scores[language] += 2 * len(pattern.findall(unnamed))
    if usual in scores and len(prose.split()) > 1:
        scores[usual] += 1
    best, second = sorted(LANGUAGES, key=scores.__getitem__, reverse=True)[:2]
    if scores[best] < 2 or scores[best] <= scores[second]:
        return None
    return best if usual in ("", best) or _is_sure(prose, best) else None


def _is_sure(prose: str, language: Language) -> bool:
    """Tell whether a text holds two words that are only of this language, or a long one."""
    pattern = dict(_PATTERNS)[language]
    signs = sum(" " in match or match in "¿¡" for match in {*pattern.findall(prose)})
    for token in set(prose.casefold().split()):
        own = [one for one in _WORD.findall(token) if _vocabulary().get(one, frozenset()) == {language}]
        if any(len(one) >= _UNMISTAKABLE for one in own):
            return True
        signs += bool(own or pattern.search(token))
    return signs >= 2


def _score_word(word: str, scores: dict[Language, int], *, is_name: bool) -> None:
    """Add 2 for a word of one language, 1 for each of two; for an unknown word 1 for its look."""
    languages = _vocabulary().get(word.casefold()) or _vocabulary().get(
        _DRAWN_OUT.sub(r"\1", word.casefold())
    )
    if languages is not None:
        for language in languages:
            scores[language] += 3 - len(languages)
    elif not is_name:
        for language, pattern in _LOOKS:
            scores[language] += bool(pattern.search(word.casefold()))


@cache
def _catalogue(language: str) -> gettext.NullTranslations:
    known = re.split("[-_]", language.lower())[0]
    if known not in LANGUAGES:
        return gettext.NullTranslations()
    return gettext.translation("recado", Path(__file__).parent / "locale", [known], fallback=True)


@cache
def _vocabulary() -> dict[str, frozenset[Language]]:
    """Return the known words with their languages, also without accents, which people leave out."""
    lists: dict[Language, set[str]] = {language: set(words.split()) for language, words in _WORDS.items()}
    found: dict[str, set[Language]] = {}
    for language, words in lists.items():
        others: set[str] = set().union(*(lists[other] for other in LANGUAGES if other != language))
        bare = {_bare(word) for word in words} - others
        for word in words | bare:
            found.setdefault(word, set()).add(language)
    return {word: frozenset(languages) for word, languages in found.items()}


def _bare(word: str) -> str:
    marks = unicodedata.normalize("NFD", word)
    return "".join(character for character in marks if not unicodedata.combining(character))


# Words of one language that are said in all: they change nobody's language.
_LOANS = frozenset(
    {"ok", "okay", "bye", "hello", "hi", "sorry", "thanks", "thank", "you", "thx", "please", "help"}
)
_LOANS |= {"cool", "nice", "gracias", "obrigado", "obrigada", "ciao", "chau"}
# What is to be translated is in another language than who asks.
_TRANSLATES = re.compile(
    r"\W*(?:(?P<es>traduc[eií]\w*|c[oó]mo se dice)|(?P<pt>traduz\w*|como se (?:diz|fala))"
    r"|(?P<en>translate|how do (?:you|i) say))\b",
    re.IGNORECASE,
)
_LONGEST = 2_000
_UNMISTAKABLE = 10  # letters of a word that tells by itself
_NOT_PROSE = re.compile(r"```.*?```|https?://\S+|\S+@\S+|[@#]\w+|(?<!\S)/\w+", re.DOTALL | re.IGNORECASE)
_NAME = re.compile(r"(?<=[^\W\d_] )[A-ZÁÉÍÓÚÂÊÔÃÕÑÇ][^\W\d_]+")
_DRAWN_OUT = re.compile(r"(\w)\1+$")  # "heyyy"
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")

# letters and habits that only one of the three has
_PATTERNS: tuple[tuple[Language, re.Pattern[str]], ...] = (
    ("es", re.compile(r"[¿¡]|ñ|\b(?:ja){2,}\b|\b(?:je){2,}\b", re.IGNORECASE)),
    (
        "pt",
        re.compile(
            r"[ãõçêôâà]|\bk{3,}\b|\b(?:rs){2,}\b|\bque horas\b|\bo (?:server|servidor)\b|\bo \w+ d[ao]\b",
            re.IGNORECASE,
        ),
    ),
    ("en", re.compile(r"\w'(?:s|t|m|re|ve|ll|d)\b", re.IGNORECASE)),
)

# the look of words that are in no list
_LOOKS: tuple[tuple[Language, re.Pattern[str]], ...] = (
    (
        "es",
        re.compile(
            r"(?:ci[oó]n|dad|[aeé]s?te|ero|iendo|[aá]ndo|illos?|[aei]me(?:l[oa]s?)?|(?<!r)[áé])$|ll|ue|ie|^h[aeu]"
        ),
    ),
    ("pt", re.compile(r"(?:ões|dade|eir[oa]s?|[aei]m|ou|ei|inh[oa]s?|agem|vel|ência)$|nh|lh|ss|ei|ou")),
    ("en", re.compile(r"(?:ing|ed|tion|ly|ness|ght|ment|ck|sh|y)$|th|wh|sh|w|k|ee|oo")),
)

_WORDS: dict[Language, str] = {
    "en": """
        ok google the yo an and or but of to in on at by for with from about into over than then that
        this these those it its is are was were be been being am do does did done don doing have has had
        having will would can could should shall may might must not yes yeah yep nope n lol hell
        please thanks thank thx cheers hi hello hey bye goodbye good morning afternoon evening night
        well fine great nice sorry welcome sure right wrong i me my mine you your yours u ur he him his
        she her they them their we us our what when where who whom which why how much many more most
        less some any every each all both none one two three four five six seven eight nine ten first
        second next last now today tomorrow tonight yesterday soon later before after always never again
        still just only very too also here there up down out off if because so as until while during
        between without make made take took get got give gave go going gone went come came see saw know
        knew think want wanna need like love help stop start show tell told say said ask find found look
        search send sent read write wrote note notes save saved add added put set remember remind
        reminder forget delete remove cancel change buy pay call open close list lists new old big small
        cheap day days week weeks month months year years hour hours minute minutes time date monday
        tuesday wednesday thursday friday saturday sunday january february march april june july august
        september october november december weather rain sunny cold hot money price cost bill number
        percent sum total divided times plus minus half square root bread milk eggs water food lunch
        dinner breakfast coffee house home work job meeting appointment doctor dentist school friend mom
        dad mother father brother sister wife husband son daughter kid kids people man woman name phone
        message email birthday party trip flight car book movie music song game password file files
        folder word words question answer problem thing things something anything nothing everything
        someone anyone everyone way world city country street place calculate convert translate explain
        understand mean means called speak english spanish portuguese language let's gonna long far away
        back keep try use using used working works broken wait let another other same different better
        best bad worse london paris tokyo happen happened happy sad tired hungry idea true false left
        schedule create deleted jot dear difference timezone zone since compute subtract multiply
        multiplied due listing testing test quick dont cant whats im ive thats youre lets pls tmrw gotta
        cool awesome perfect i'm it's buddy dude bro checked check order turn percentage evaluate solve
        divide result calc
    """,
    "es": """
        stop ok google la los las un una unos unas lo al del de a y o u pero ni que qué quién cuál
        cuáles cuándo dónde adónde como cómo cuánto cuánta cuántos cuántas porque porqué por para con
        sin sobre entre hasta desde hacia según en es son era eran fue fueron ser soy eres sos somos
        está estás están estoy estamos estaba estar estuve hay había hubo haber he ha han hemos has yo
        tú vos usted ustedes él ella ellos ellas nosotros me te se le les nos mi mis tu tus su sus mío
        mía tuyo nuestro nuestra esto esta este estos estas eso esa ese esos esas aquello aquel aquí acá
        allí allá ahí sí no ya muy más menos mucho mucha muchos muchas poco poca pocos todo toda todos
        todas algo nada alguien nadie alguno algún alguna ningún ninguna otro otra otros otras mismo
        misma cada tan tanto también tampoco sólo siempre nunca jamás hoy ayer mañana anoche ahora luego
        después antes pronto tarde temprano noche noches día días tardes semana semanas mes meses año
        años hora horas minuto minutos segundo segundos fecha lunes martes miércoles jueves viernes
        sábado domingo enero febrero marzo abril mayo junio julio agosto septiembre setiembre octubre
        noviembre diciembre hola buenas buenos buen bueno buena gracias grax chau adiós saludos dale
        vale listo claro perfecto genial bien mal mejor peor perdón disculpe favor porfa porfis oye oiga
        che mirá bienvenido encantado nel órale ándale sale venga vaya tal tengo tienes tenés tiene
        tienen tenemos tenía tuve tener quiero quieres querés quiere quieren quería quisiera puedo
        puedes podés puede pueden podemos podrías podría poder debo debes debe hago hacés hace hacen
        hacer hecho hice hizo hicieron haz voy vas va vamos van ir iba ido fui dame denme deme dime
        dígame decime decir dice dicen digo dijo dicho di ponme poneme poner pon poné puse puso uy
        deshacé deshaz deshacelo deshazlo deshacer recuérdame recordame recuérdamelo recordar recuerda
        recordá recordatorio recordatorios acuérdame acordame acuérdate acordate anota anotá anótame
        anótalo anotar apuntá apúntame apuntar guarda guardá guárdame guardar guardado guárdalo busca
        buscá búscame buscar muestra mostrá muéstrame mostrame mostrar borrá bórralo borrar elimina
        eliminar quita quitar cancela cancelá cancelar avísame avisar agenda agendá agéndame agendar
        agregá agrégale agregar añade añadir leé leer léeme escribe escribí escribir manda mandá mándame
        mandar envía enviá envíame enviar envíale llamá llamar llámame calcula calculá calcular
        convierte convertir traduce traducí tradúceme traducir explica explicá explícame explicar
        cuéntame contame contar cambia cambiar compra comprá comprar comprame ayuda ayúdame ayudar
        ayudarme haceme hazme necesito necesitas necesita necesitamos sabes sabés sabe sé saber creo
        crees cree pienso gusta gustaría encanta falta faltan queda quedan cuesta cuestan entiendo
        entiendes entendés entendí entender llego llega llegar salir vengo viene venir vení vine nuevo
        nueva nuevos viejo grande pequeño chico barato caro rápido despacio lindo fácil difícil igual
        distinto último última primero primera próximo próxima siguiente dos tres cuatro cinco seis
        siete ocho nueve diez once doce quince veinte treinta cuarenta cincuenta cien ciento mil medio
        media mitad raíz cuadrada dividido resta multiplica multiplicado porcentaje número números
        precio plata dinero lana pesos cuenta pagar pago factura nota notas lista listas tarea tareas
        pendiente pendientes cosa cosas pan leche huevos agua comida almuerzo cena desayuno café carne
        pollo queso casa trabajo oficina reunión cita doctor médico médica dentista turno escuela
        colegio amigo amiga amigos mamá papá hermano hermana hijo hija hijos esposa esposo novio novia
        abuela tío tía gente hombre mujer nombre apellido celular teléfono móvil mensaje mensajes correo
        cumpleaños cumple fiesta viaje vuelo coche carro auto libro película música canción juego
        contraseña clave archivo archivos carpeta palabra palabras pregunta preguntas respuesta problema
        ciudad país calle lugar clima tiempo lluvia llueve llover frío calor sol pronóstico temperatura
        español inglés portugués idioma idiomas hablás habla hablar llamo llamás vives detener detente
        espera esperá esperar parar basta olvidá olvídalo olvidar dejá dejar sigue seguí seguir sirve
        sirven funciona funcionan pasó pasar pásame así entonces aunque mientras durante tome además
        demasiado bastante casi quizás quizá vez ojalá acuerdo verdad mentira cierto feliz triste
        cansado cansada contento madrugada mediodía medianoche cerca lejos adentro afuera arriba abajo
        izquierda derecha algunas siento lamento ayudes ayudarías quedó pongas digas mandes llamarlo
        regalo receta recetas gimnasio banco luz gas internet alquiler renta súper mercado dia dias da
        dan cae anotado anotados anoté toma tomar crea crear créame ver listame listar bórrame sácame
        calcúlame convertí convertime serían sería será sumá sumar restar resto huso diferencia zona
        horaria sacá hacela decile decirle dile llevame lleva quiénes hubiera habrá estaría tendría andá
        andás andan pasá vemos contestá responde respondé ultimas ultimos contraseñas mensajito mandale
        mandarle fíjate olvides olvidate avisa avisá recuerdes déjame prueba probar probando amor mero
        ahorita padre chido laburo pibe boludo wey güey onda ondas carajo pongo abrir abre abrí cierra
        cerrar hablame explicás querido disculpá tranquilo tranquila porción diga digan anote tira tirar
        seria calculas resuelve resolvé resolver divide mas aqui anos frio raiz tia tio podes queres
        entendi servidor servidores instala instalá instalar instale desinstala desinstalar apagá prende
        activa desactiva aprueba aprobá herramienta herramientas actualizá
    """,
    "pt": """
        lista esvazie esvazia esvaziar fecha fecho fechar fechado projeto projetos stop ok google o a os
        as um uma uns umas ao aos à às do da dos das no na nos nas num numa pelo pela pelos pelas de em
        ou mas nem que quê quem qual quais quando onde aonde como quanto quanta quantos quantas porque
        porquê por para pra pro pras pros com sem sobre entre até desde é são era eram foi foram ser sou
        és somos está estás estão estou estamos estava estar tá tô tava tão há havia houve haver hei eu
        tu você vocês vc vcs cê ele ela eles elas nós gente me te se lhe lhes mim comigo contigo meu
        minha meus minhas teu tua seu sua seus suas nosso nossa isto isso aquilo este esta estes estas
        esse essa esses essas aquele aquela aqui aí ali lá cá sim não n já muito muita muitos muitas
        mais menos pouco pouca poucos todo toda todos todas tudo algo nada alguém ninguém algum alguma
        nenhum nenhuma outro outra outros outras mesmo mesma cada tanto também tb tbm só somente sempre
        nunca jamais hoje ontem amanhã agora logo depois antes cedo tarde noite noites manhã dia dias
        tardes semana semanas mês meses ano anos hora horas minuto minutos segundo segundos data segunda
        terça quarta quinta sexta sábado domingo feira janeiro fevereiro março abril maio junho julho
        agosto setembro outubro novembro dezembro oi olá opa alô eae bom boa bons boas obrigado obrigada
        obg brigado brigada valeu vlw tchau adeus abraço abraços beijo beijos falou beleza blz certo
        claro perfeito ótimo ótima legal bem mal melhor pior desculpa desculpe perdão favor pfv pf oxe
        cara mano bem-vindo prazer tenho tens têm temos tinha tive teve ter quero queres quer querem
        queria gostaria posso podes pode podem podemos podia poderia poder devo deve faço fazes faz
        fazem fazer feito fiz fez façam faça vou vais vai vamos vão ir ia ido fui dá dar dê dei deu dado
        diga digam diz dizem dizer disse digo dito põe pôr coloca coloque colocar bota botar lembra
        lembre lembrar lembrete lembretes lembrar-me lembro anota anote anotar anotado salva salve
        salvar guarda guarde guardar busca busque buscar procura procure procurar pesquisa pesquisar
        mostra mostre mostrar apaga apague apagar exclui excluir exclua remove remova remover tira tirar
        cancela cancele cancelar avisa avise avisar agenda agende agendar marca marque marcar adiciona
        adicione adicionar acrescenta lê leia ler escreve escreva escrever manda mande mandar envia
        envie enviar liga ligue ligar chama chame chamar calcula calcule calcular converte converta
        converter traduz traduza traduzir explica explique explicar conta conte contar muda mude mudar
        troca trocar compra compre comprar ajuda ajude ajudar ajudar-me preciso precisa precisas
        precisamos sabe sabes saber sei acho achas acha penso gosto gosta adoro falta faltam resta custa
        custam entendo entende entendi entender chego chega chegar sair saio venho vem vir veio novo
        nova novos velho grande pequeno barato caro rápido devagar bonito fácil difícil igual diferente
        último última primeiro primeira próximo próxima seguinte dois duas três quatro cinco seis sete
        oito nove dez onze doze quinze vinte trinta quarenta cinquenta cem cento mil meio meia metade
        raiz quadrada dividido soma some subtrai multiplica multiplicado vezes porcento porcentagem
        número números preço dinheiro grana reais real pagar pago boleto fatura nota notas listas tarefa
        tarefas pendente pendentes coisa coisas pão leite ovos água comida almoço jantar janta café
        carne frango queijo casa trabalho escritório reunião consulta doutor médico médica dentista
        escola faculdade amigo amiga amigos mãe pai irmão irmã filho filha filhos esposa marido namorado
        namorada avó tio tia homem mulher nome sobrenome celular telefone mensagem mensagens email
        aniversário festa viagem voo carro livro filme música canção jogo senha arquivo arquivos pasta
        palavra palavras pergunta perguntas resposta problema cidade país rua lugar clima tempo chuva
        chove chover frio calor sol previsão temperatura português inglês espanhol idioma idiomas língua
        fala falas falar chamo moro parar pare espera espere esperar basta esquece esqueça esquecer
        deixa deixe deixar segue serve servem funciona funcionam passa passou passar assim então embora
        enquanto durante além demais bastante quase talvez tomara acordo verdade mentira feliz triste
        cansado cansada contente madrugada meio-dia perto longe dentro fora cima baixo esquerda direita
        algumas sinto presente receita receitas academia banco luz gás internet aluguel mercado qualquer
        ainda pôxa tchauzinho vamo bora né ué pois cadê tirou ficou fica ficar comprei falei mandei
        esqueci consegue consegues conseguir consigo lembrou estiver tiver puder será seria horário fuso
        diferença anotei dizia encontra encontre encontrar deleta deletar delete criar cria crie tome
        toma tomar ver vê veja listar liste ache achar passe pega pegue pegar somar cai caiu jóia show
        massa galera saudade saudades moço moça senhor senhora abre abrir abra responde responda teste
        testando testar ajudinha rapidinho lembrança zap dúvida dúvidas aviso conversa ônibus hein daqui
        dali dessa desse deste desta disso disto nesse nessa neste nesta nisso dele dela deles delas vez
        eita puxa sério traz traga trazer leva leve levar ganhei combinado resolva resolver divide agua
        tres mes gas servidor servidores instala instale instalar desinstala desinstalar desliga
        desligue ativa ative desativa desative aprova aprove ferramenta ferramentas atualiza atualize
        desfaz desfazer pronto
    """,
}
